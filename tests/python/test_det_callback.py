"""DetCallback of the stand-in for determined: a Trainer's hooks, called as the Trainer calls them."""
import json
import os
import sys
import types
from unittest import mock

from support import PackageTest

import determined as det
from determined import core


class TheTrainer(PackageTest):
    def setUp(self):
        super().setUp()
        os.environ.pop("DSAT_EXPERIMENT", None)
        transformers = types.ModuleType("transformers")
        transformers.TrainerCallback = object
        trainer_utils = types.ModuleType("transformers.trainer_utils")
        trainer_utils.get_last_checkpoint = lambda folder: sorted(p.path for p in os.scandir(folder) if p.is_dir())[-1]
        transformers.trainer_utils = trainer_utils
        modules = mock.patch.dict(sys.modules, {"transformers": transformers,
                                                "transformers.trainer_utils": trainer_utils})
        modules.start()
        self.addCleanup(modules.stop)
        for name in [n for n in sys.modules if n.startswith("determined.transformers")]:
            del sys.modules[name]

    def begin(self, length=4, **searcher):
        os.environ["DSAT_HPARAMS"] = self.write("hparams.json", {})
        os.environ["DSAT_EXPERIMENT"] = self.write(
            "experiment.json", {"searcher": {"metric": "eval_loss", "max_length": {"batches": length}, **searcher}})
        self.args = types.SimpleNamespace(output_dir=str(self.dir / "out"), max_steps=length, num_train_epochs=3,
                                          overwrite_output_dir=False, resume_from_checkpoint=None)
        os.makedirs(self.args.output_dir, exist_ok=True)

    def train(self, callback, steps, log_every=2):
        """The Trainer's loop, as far as the callback sees it; the step at which it stops."""
        state = types.SimpleNamespace(global_step=0, epoch=0.0, is_world_process_zero=True, best_metric=None)
        control = types.SimpleNamespace(should_training_stop=False, should_save=False, should_log=False,
                                        should_evaluate=False)
        while state.global_step < steps and not control.should_training_stop:
            state.global_step += 1
            state.epoch += 0.1
            callback.on_step_end(self.args, state, control)
            if control.should_log or state.global_step % log_every == 0:
                callback.on_log(self.args, state, control, logs={"loss": 1.0 / state.global_step, "other": 3})
            if control.should_evaluate:
                callback.on_log(self.args, state, control, logs={"eval_loss": 2.0 / state.global_step})
            if control.should_save:
                folder = self.dir / "out" / ("checkpoint-%d" % state.global_step)
                folder.mkdir()
                (folder / "model.bin").write_text("x")
                callback.on_save(self.args, state, control)
            control.should_log = control.should_evaluate = control.should_save = False
        return state.global_step

    def test_it_reports_saves_and_ends_at_the_length(self):
        from determined.transformers import DetCallback

        self.begin(length=4)
        with core.init() as context:
            callback = DetCallback(context, self.args, filter_metrics=["loss"], user_data={"finetuned_from": "x"})
            self.assertEqual(callback.current_op.length, 4)
            self.assertEqual(self.train(callback, steps=10), 4)
        reported = [json.loads(line) for line in (self.dir / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([(m["group"], m["steps_completed"], sorted(m["metrics"])) for m in reported],
                         [("training", 2, ["loss"]), ("training", 4, ["loss"]), ("validation", 4, ["eval_loss"])])
        stored, = (p for p in (self.dir / "checkpoints").iterdir() if p.is_dir())
        self.assertEqual(sorted(p.name for p in (stored / "checkpoint-4").iterdir()), ["model.bin", "my_data.json"])
        self.assertIsNone(det.get_cluster_info().latest_checkpoint, "stored at the end: the next run begins anew")

    def test_a_subclass_may_save_other_data(self):
        from determined.transformers import DetCallback

        class Mine(DetCallback):
            def _on_save_user_data(self, save_path):
                with open(os.path.join(save_path, "mine.txt"), "w", encoding="utf-8") as file:
                    file.write(self.user_data)

        self.begin(length=2)
        with core.init() as context:
            self.train(Mine(context, self.args, user_data="x"), steps=2)
        stored, = (p for p in (self.dir / "checkpoints").iterdir() if p.is_dir())
        self.assertEqual((stored / "checkpoint-2/mine.txt").read_text(), "x")

    def test_it_goes_on_from_a_checkpoint(self):
        from determined.transformers import DetCallback

        self.begin(length=4)
        with core.init() as context:
            with context.checkpoint.store_path({"steps_completed": 2}) as (path, _):
                (path / "checkpoint-2").mkdir()
                (path / "checkpoint-2" / "model.bin").write_text("x")
            DetCallback(context, self.args)
        self.assertEqual(self.args.resume_from_checkpoint, str(self.dir / "out" / "checkpoint-2"))

    def test_lengths_that_differ_are_refused(self):
        from determined.transformers import DetCallback

        self.begin(length=4)
        self.args.max_steps = 5
        refusal = self.assertRaisesRegex(ValueError, "searcher.max_length is 4")
        with core.init() as context, refusal:
            DetCallback(context, self.args)

    def test_in_a_trial_the_engine_ends_first(self):
        from determined.transformers import DetCallback

        self.begin(length=100)
        self.args.max_steps = 77
        self.begin_trial(end=5)
        with core.init() as context:
            callback = DetCallback(context, self.args)
            self.assertEqual(self.train(callback, steps=6, log_every=10), 6)
            self.assertFalse(callback.updating_searcher)

    def test_outside_of_an_experiment_it_says_what_to_do(self):
        from determined.transformers import DetCallback

        with core.init() as context, self.assertRaisesRegex(ValueError, "DetCallback .* dsat-host"):
            DetCallback(context, types.SimpleNamespace(output_dir=str(self.dir)))
