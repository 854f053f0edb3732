"""Trial classes of the stand-in for determined, on the stand-in for deepspeed: wants torch. The loop, its rules, its files."""
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

from support import PACKAGE, PackageTest

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
sys.path.insert(0, str(FIXTURES / "packages"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import deepspeed  # noqa: E402
from deepspeed import pipe  # noqa: E402

from determined import pytorch  # noqa: E402
from determined.errors import InvalidExperimentException  # noqa: E402
from determined.exec import harness  # noqa: E402
from determined.pytorch import deepspeed as det_ds  # noqa: E402

CONFIG = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4}  # two micro batches a batch


class Line(torch.utils.data.Dataset):
    def __init__(self, length=32):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        x = torch.tensor([index / self.length])
        return x, 2 * x + 1


class Counter(pytorch.PyTorchCallback):
    """How often each hook was called, in order."""

    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name.startswith("on_") and name != "on_checkpoint_end":
            object.__getattribute__(self, "calls").append(name)
        return object.__getattribute__(self, name)


class LineTrial(det_ds.DeepSpeedTrial):
    """The plainest trial class; the tests change parts of it."""

    callbacks = {}

    def __init__(self, context):
        self.context = context
        self.loss = torch.nn.MSELoss()
        model = torch.nn.Linear(1, 1)
        self.engine, _, _, _ = deepspeed.initialize(model=model, config=dict(CONFIG), model_parameters=model.parameters())
        self.engine = context.wrap_model_engine(self.engine)
        self.after_wrapping()

    def after_wrapping(self):
        pass

    def build_callbacks(self):
        return self.callbacks

    def build_training_data_loader(self):
        return pytorch.DataLoader(Line(), batch_size=4)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Line(8), batch_size=4)

    def micro_batch(self, iterator):
        x, y = self.context.to_device(next(iterator))
        loss = self.loss(self.engine(x), y)
        self.engine.backward(loss)
        self.engine.step()
        return loss

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        return {"loss": self.micro_batch(dataloader_iter)}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        x, y = next(dataloader_iter)
        return {"val_loss": self.loss(self.engine(x), y)}


class TrialTest(PackageTest):
    def setUp(self):
        super().setUp()
        for name in ("DSAT_EXPERIMENT", "DET_MANUAL_INIT_DISTRIBUTED"):
            os.environ.pop(name, None)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)

    def train(self, trial_class, length=4, hparams=None, **config):
        """Trains `trial_class` as the harness does; the trial."""
        config.setdefault("searcher", {"metric": "val_loss", "max_length": length})
        os.environ["DSAT_HPARAMS"] = self.write("hparams.json", hparams or {})
        os.environ["DSAT_EXPERIMENT"] = self.write("experiment.json", config)
        made = []

        class Kept(trial_class):
            def __init__(self, context):
                made.append(self)
                super().__init__(context)

        Kept.__name__ = trial_class.__name__
        sys.modules["the_model"] = sys.modules[__name__]
        setattr(sys.modules[__name__], "Chosen", Kept)
        harness.train("the_model:Chosen")
        return made[0]

    def refused(self, words, trial_class, **more):
        with self.assertRaisesRegex((InvalidExperimentException, RuntimeError), words):
            self.train(trial_class, **more)

    def reported(self, group):
        lines = (self.dir / "metrics.jsonl").read_text().splitlines()
        return [(m["steps_completed"], m["metrics"]) for m in map(json.loads, lines) if m["group"] == group]


class Training(TrialTest):
    def test_a_batch_is_as_many_calls_as_it_has_micro_batches(self):
        trial = self.train(LineTrial, length=4, scheduling_unit=3)
        self.assertEqual((trial.engine.micro_steps, trial.engine.global_steps), (8, 4))
        self.assertEqual([step for step, _ in self.reported("training")], [3, 4])
        self.assertEqual([step for step, _ in self.reported("validation")], [4])

    def test_it_learns(self):
        trial = self.train(LineTrial, length=400)
        (_, metrics), = self.reported("validation")
        self.assertLess(metrics["val_loss"], 0.1)
        self.assertAlmostEqual(trial.engine.module.bias.item(), 1, delta=0.5)

    def test_lengths_and_periods_in_batches_epochs_and_records(self):
        for length, batches in (({"batches": 5}, 5), ({"epochs": 2}, 8), ({"records": 24}, 3)):
            with self.subTest(length):
                self.assertEqual(self.train(LineTrial, length=length).engine.global_steps, batches)
        self.train(LineTrial, length=5, min_validation_period={"epochs": 1}, min_checkpoint_period=2,
                   perform_initial_validation=True, checkpoint_policy="none")
        self.assertEqual([step for step, _ in self.reported("validation")][-3:], [0, 4, 5])

    def test_a_tensor_is_the_loss(self):
        class Bare(LineTrial):
            def train_batch(self, *arguments):
                return self.micro_batch(arguments[0])

        self.train(Bare)
        self.assertEqual(list(self.reported("training")[0][1]), ["loss"])

    def test_arrays_are_averaged_and_what_has_no_mean_is_left_out_of_means(self):
        class Arrays(LineTrial):
            def train_batch(self, iterator, epoch_idx, batch_idx):
                return {"loss": self.micro_batch(iterator), "pair": np.array([1.0, 3.0]), "text": "x"}

            def evaluate_batch(self, iterator, batch_idx):
                return {**super().evaluate_batch(iterator, batch_idx), "preds": torch.tensor([[2.0], [4.0]])}

        self.train(Arrays)
        self.assertEqual(self.reported("training")[0][1]["pair"], 2.0)
        self.assertNotIn("text", self.reported("training")[0][1])
        self.assertEqual(self.reported("validation")[0][1]["preds"], 3.0)

    def test_two_engines(self):
        class Two(LineTrial):
            def after_wrapping(self):
                other = torch.nn.Linear(1, 1)
                self.other = self.context.wrap_model_engine(deepspeed.initialize(
                    model=other, config={"train_batch_size": 2}, model_parameters=other.parameters())[0])

        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            trial = self.train(Two)
        self.assertIn("engine 2 has micro batch 2, the first one 4", logs.output[0])
        self.assertEqual(trial.context.models, [trial.engine, trial.other])
        checkpoint, = (p for p in (self.dir / "checkpoints").iterdir() if p.is_dir())
        self.assertEqual(sorted(p.name for p in checkpoint.iterdir() if p.is_dir()), ["model0", "model1"])

    def test_epochs_are_told(self):
        seen = []

        class Epochs(LineTrial):
            def train_batch(self, iterator, epoch_idx, batch_idx):
                context = self.context
                seen.append((epoch_idx, batch_idx, context.is_epoch_start(), context.is_epoch_end(), context.current_train_epoch(),
                             context.current_train_batch()))
                return super().train_batch(iterator, epoch_idx, batch_idx)

        self.train(Epochs, length=5)
        self.assertEqual(seen[::2], [(0, 0, True, False, 0, 0), (0, 1, False, False, 0, 1), (0, 2, False, False, 0, 2),
                                     (0, 3, False, True, 0, 3), (1, 4, True, False, 1, 4)])

    def test_equal_seeds_train_equally(self):
        class Noisy(LineTrial):
            def build_training_data_loader(self):
                return pytorch.DataLoader(Line(), batch_size=4, shuffle=True)

            def train_batch(self, iterator, *_):
                self.noise = (random.random(), np.random.rand(), torch.rand(1).item())
                return {"loss": self.micro_batch(iterator), "noise": sum(self.noise)}

        runs = []
        for seed in (5, 5, 6):
            (self.dir / "metrics.jsonl").unlink(missing_ok=True)
            self.train(Noisy, reproducibility={"experiment_seed": seed})
            runs.append(self.reported("training") + self.reported("validation"))
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0], runs[2])

    def test_a_stop_is_taken_up_again(self):
        class Stops(LineTrial):
            def train_batch(self, iterator, epoch_idx, batch_idx):
                if batch_idx == 1:
                    self.context.set_stop_requested(True)
                return super().train_batch(iterator, epoch_idx, batch_idx)

        seen = []

        class Sees(LineTrial):
            def train_batch(self, iterator, epoch_idx, batch_idx):
                x, y = next(iterator)
                seen.append((batch_idx, round(x[0].item() * 32)))
                return super().train_batch(iter([(x, y)]), epoch_idx, batch_idx)

        self.train(Stops, length=4, scheduling_unit=2)
        trial = self.train(Sees, length=4, scheduling_unit=2)
        # Batches of 2 x 4 samples: the third begins at sample 16.
        self.assertEqual(seen, [(2, 16), (2, 20), (3, 24), (3, 28)])
        self.assertEqual(trial.engine.global_steps, 4)
        self.assertEqual([step for step, _ in self.reported("training")], [2, 4])

    def test_the_manual_backend_is_left_to_the_trial(self):
        calls = []
        real, deepspeed.init_distributed = deepspeed.init_distributed, lambda **named: calls.append(named)
        self.addCleanup(setattr, deepspeed, "init_distributed", real)
        self.train(LineTrial)
        os.environ["DET_MANUAL_INIT_DISTRIBUTED"] = "1"
        self.train(LineTrial)
        self.assertEqual(calls, [{"auto_mpi_discovery": False}])


class Tuning(TrialTest):
    def test_the_engine_ends_the_trial(self):
        class Tuned(LineTrial):
            def __init__(self, context):
                from determined.pytorch import dsat

                self.context, self.loss = context, torch.nn.MSELoss()
                model = torch.nn.Linear(1, 1)
                config = dsat.get_ds_config_from_hparams(context.get_hparams())
                self.engine = context.wrap_model_engine(deepspeed.initialize(model=model, config=config)[0])

        for info in (True, False):
            with self.subTest(info):
                self.begin_trial(model_info=info, config=CONFIG)
                with self.assertRaises(SystemExit) as end:
                    self.train(Tuned)
                self.assertIn(end.exception.code, (None, 0))
        self.assertEqual(self.result("model_info.json")["num_params"], 2)
        self.assertGreater(self.result()["wall_latency"], 0)
        self.assertGreater(self.result()["throughput"], 0)

    def test_an_engine_without_the_trials_configuration_is_timed_from_outside(self):
        self.begin_trial(config={**CONFIG, "gradient_accumulation_steps": 2})
        with self.assertRaises(SystemExit) as end:
            self.train(LineTrial)
        self.assertEqual(end.exception.code, 0)
        self.assertGreater(self.result()["throughput"], 0)


class Rules(TrialTest):
    def with_method(self, **methods):
        return type("Changed", (LineTrial,), methods)

    def test_what_train_batch_and_evaluate_batch_return(self):
        self.refused("train_batch returned a float", self.with_method(train_batch=lambda self, i, e, b: self.micro_batch(i).item()))
        self.refused("evaluate_batch returned a Tensor", self.with_method(evaluate_batch=lambda self, i, b: torch.ones(1)))
        self.refused("evaluate_batch returned \\['1'\\] after \\['0'\\]",
                     self.with_method(evaluate_batch=lambda self, i, b: {str(b): 1.0}))
        self.refused("metric 'm' of evaluate_batch has no mean", self.with_method(evaluate_batch=lambda self, i, b: {"m": "x"}))

    def test_manual_accumulation_trains_all_micro_batches(self):
        def train_batch(self, iterator, epoch_idx, batch_idx):
            return {"loss": [self.micro_batch(iterator) for _ in range(self.count)][-1]}

        def disable(self):
            self.context.disable_auto_grad_accumulation()

        right = self.with_method(train_batch=train_batch, after_wrapping=disable, count=2)
        self.assertEqual(self.train(right, length=3).engine.global_steps, 3)
        self.refused("trained 1 of the 2 micro batches of a batch",
                     self.with_method(train_batch=train_batch, after_wrapping=disable, count=1))

    def test_loaders(self):
        plain = self.with_method(build_training_data_loader=lambda self: torch.utils.data.DataLoader(Line(), batch_size=4))
        self.refused("build_training_data_loader\\(\\) returned a DataLoader: return a determined.pytorch.DataLoader", plain)
        plain.after_wrapping = lambda self: self.context.disable_dataset_reproducibility_checks()
        self.assertEqual(self.train(plain, length=9).engine.global_steps, 9)  # more than it holds: it is repeated
        plain.build_validation_data_loader = lambda self: 3
        self.refused("build_validation_data_loader\\(\\) returned 3", plain)
        self.refused("has 1 micro batches on a rank, and one batch takes 2 .*too short",
                     self.with_method(build_training_data_loader=lambda self: pytorch.DataLoader(Line(4), batch_size=4)))
        self.refused("validation's data loader has no batch",
                     self.with_method(build_validation_data_loader=lambda self: pytorch.DataLoader(Line(3), batch_size=4, drop_last=True)))

    def test_engines_and_the_parallel_unit(self):
        unit = det_ds.ModelParallelUnit(0, 1, True, True)

        def twice(self):
            self.context.set_mpu(unit)
            self.context.set_mpu(unit)

        def early(self, context):
            context.set_mpu(unit)

        self.refused("set_mpu\\(\\) was called twice", self.with_method(after_wrapping=twice))
        self.refused("set_mpu\\(\\) before wrap_model_engine", self.with_method(__init__=early))
        self.refused("set_mpu\\(\\) got a int without data_parallel_rank", self.with_method(after_wrapping=lambda self: self.context.set_mpu(3)))
        silent = det_ds.ModelParallelUnit(0, 1, False, True)
        self.refused("average_training_metrics", self.with_method(after_wrapping=lambda self: self.context.set_mpu(silent)),
                     optimizations={"average_training_metrics": False})
        self.refused("wrapped no engine", self.with_method(__init__=lambda self, context: None))
        self.refused("wrap_model_engine\\(\\) got a Linear",
                     self.with_method(__init__=lambda self, context: context.wrap_model_engine(torch.nn.Linear(1, 1))))
        self.refused("train_micro_batch_size_per_gpu is the engine's",
                     self.with_method(__init__=lambda self, context: context.train_micro_batch_size_per_gpu))

    def test_the_experiments_own_keys(self):
        for config, words in (({"optimizations": {"mixed_precision": "O1"}}, "mixed_precision is 'O1'"),
                              ({"optimizations": {"aggregation_frequency": 2}}, "aggregation_frequency is 2"),
                              ({"checkpoint_policy": "some"}, "checkpoint_policy is 'some'"),
                              ({"scheduling_unit": "x"}, "scheduling_unit is 'x'"),
                              ({"min_validation_period": {"years": 1}}, "'years' is no unit")):
            with self.subTest(words):
                self.refused(words, LineTrial, **config)

    def test_the_class_itself(self):
        (self.dir / "model_def.py").write_text("import determined.pytorch.deepspeed as d\nclass A(d.DeepSpeedTrial): pass\nclass B: pass\n")
        for name, words in (("model_def", "give module:Class"), ("nowhere:A", "there is no nowhere.py in"),
                            ("model_def:C", "has no class C; its trial classes are A"), ("model_def:B", "B is no DeepSpeedTrial")):
            with self.subTest(name), self.assertRaisesRegex(InvalidExperimentException, words):
                harness.load_trial_class(name)

    def test_an_error_is_one_line_with_its_place(self):
        (self.dir / "model_def.py").write_text(
            "from determined.pytorch.deepspeed import *\nclass A(DeepSpeedTrial):\n"
            "    train_batch = evaluate_batch = build_training_data_loader = build_validation_data_loader = None\n"
            "    def __init__(self, context):\n        context.get_hparam('x')\n        context.set_mpu(None)\n")
        environment = dict(os.environ, PYTHONPATH=f"{PACKAGE}:{FIXTURES / 'packages'}")
        environment["DSAT_HPARAMS"] = self.write("hparams.json", {"x": 1})
        result = subprocess.run([sys.executable, "-m", "determined.exec.harness", "--train-entrypoint", "model_def:A"],
                                env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.splitlines()[-1], "model_def.py:6: set_mpu() before wrap_model_engine(): wrap the engine first")

    def test_overwrite_deepspeed_config(self):
        base = {"a": 1, "nested": {"b": 2, "c": [1]}}
        self.assertEqual(det_ds.overwrite_deepspeed_config(base, {"nested": {"c": [2]}}), {"a": 1, "nested": {"b": 2, "c": [2]}})
        self.assertEqual(det_ds.overwrite_deepspeed_config(self.write("ds.json", base), {"a": 3})["a"], 3)
        for arguments in ((3, {}), ({}, 3), ([], {})):
            with self.subTest(arguments), self.assertRaisesRegex(TypeError, "overwrite_deepspeed_config"):
                det_ds.overwrite_deepspeed_config(*arguments)
        with self.assertRaisesRegex(ValueError, "is there twice"):
            det_ds.overwrite_deepspeed_config(self.write("twice.json", '{"a": 1, "a": 2}'), {})


class Pipelines(TrialTest):
    class Pipeline(LineTrial):
        config = CONFIG
        samples = 16

        def __init__(self, context):
            self.context = context
            model = pipe.PipelineModule([torch.nn.Linear(1, 1)], loss_fn=torch.nn.MSELoss())
            self.engine = context.wrap_model_engine(deepspeed.initialize(model=model, config=dict(self.config))[0])

        def build_validation_data_loader(self):
            return pytorch.DataLoader(Line(self.samples), batch_size=4)

        def train_batch(self, iterator, epoch_idx, batch_idx):
            return {"loss": self.engine.train_batch(iterator)}

        def evaluate_batch(self, iterator, batch_idx):
            return {"val_loss": self.engine.eval_batch(iterator)}

    def test_the_engine_takes_its_micro_batches_itself(self):
        trial = self.train(self.Pipeline, length=3)
        self.assertTrue(trial.context.use_pipeline_parallel)
        self.assertEqual(trial.engine.global_steps, 3)

    def test_a_validation_must_fill_the_pipeline(self):
        self.refused("has 1 micro batches, a pipeline takes 2 at a time", type("Short", (self.Pipeline,), {"samples": 4}))

    def test_a_part_that_does_not_fill_it_is_left_out(self):
        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            self.train(type("Odd", (self.Pipeline,), {"samples": 12}))
        self.assertIn("1 micro batches of the validation are left out", logs.output[0])

    def test_it_is_timed_from_outside_since_its_engine_reports_nothing(self):
        config = {**CONFIG, "gradient_accumulation_steps": 2}
        path = self.begin_trial(config=config)
        with open(path) as file:
            kind = type("Tuned", (self.Pipeline,), {"config": json.load(file)})
        with self.assertRaises(SystemExit):
            self.train(kind)
        self.assertGreater(self.result()["throughput"], 0)


class CallbacksAndCheckpoints(TrialTest):
    def test_all_hooks_in_their_order(self):
        counter = Counter()
        self.train(type("Counted", (LineTrial,), {"callbacks": {"counter": counter}}), length=4)
        self.assertEqual([name for name in counter.calls if name != "on_checkpoint_end"], [
            "on_trial_startup", "on_trial_shutdown", "on_training_start", "on_training_epoch_start", "on_training_epoch_end",
            "on_training_workload_end", "on_validation_start", "on_validation_epoch_start", "on_validation_epoch_end",
            "on_validation_end", "on_checkpoint_save_start", "on_checkpoint_write_end", "on_checkpoint_upload_end"])

    def test_the_shutdown_comes_after_an_exception_too(self):
        told = []

        class Tells(pytorch.PyTorchCallback):
            def on_trial_shutdown(self):
                told.append("shutdown")

        def fail(self, *_):
            raise ValueError("the model's own")

        with self.assertRaisesRegex(ValueError, "the model's own"):
            self.train(type("Fails", (LineTrial,), {"callbacks": {"a": Tells(), "b": Tells()}, "train_batch": fail}))
        self.assertEqual(told, ["shutdown", "shutdown"])

    def test_what_is_no_callback_is_refused(self):
        self.refused("build_callbacks\\(\\) gave 'x' as a int", type("Bad", (LineTrial,), {"callbacks": {"x": 3}}))

    def test_callbacks_and_random_numbers_survive_a_stop(self):
        class Keeps(pytorch.PyTorchCallback):
            count = 0

            def on_training_workload_end(self, avg_metrics, batch_metrics):
                self.count += 1

            def state_dict(self):
                return {"count": self.count}

            def load_state_dict(self, state_dict):
                self.count = state_dict["count"]

        class Draws(LineTrial):
            stops = False

            def train_batch(self, iterator, epoch_idx, batch_idx):
                if self.stops and batch_idx == 1:
                    self.context.set_stop_requested(True)
                return {"loss": self.micro_batch(iterator), "draw": random.random() + np.random.rand() + torch.rand(1).item()}

        self.train(Draws, length=4, scheduling_unit=2)
        whole = self.reported("training")
        (self.dir / "metrics.jsonl").unlink()
        self.train(type("First", (Draws,), {"stops": True, "callbacks": {"keeps": Keeps()}}), length=4, scheduling_unit=2)
        second = Keeps()
        self.train(type("Second", (Draws,), {"callbacks": {"keeps": second}}), length=4, scheduling_unit=2)
        self.assertEqual(self.reported("training"), whole)
        self.assertEqual(second.count, 2)

    def damaged(self, change, words):
        def stop(self, iterator, epoch_idx, batch_idx):
            self.context.set_stop_requested(True)
            return LineTrial.train_batch(self, iterator, epoch_idx, batch_idx)

        self.train(type("Stops", (LineTrial,), {"train_batch": stop}), length=4, scheduling_unit=1)
        checkpoint = next(p for p in (self.dir / "checkpoints").iterdir() if p.is_dir())
        change(checkpoint)
        with self.assertRaisesRegex((InvalidExperimentException, AssertionError), words):
            self.train(LineTrial, length=4)

    def test_a_checkpoint_without_this_ranks_part(self):
        self.damaged(lambda c: (c / "det_state_dict_rank0.pth").unlink(), "has no det_state_dict_rank0.pth: was it made with as many")

    def test_a_checkpoint_that_is_torn(self):
        self.damaged(lambda c: (c / "det_state_dict_rank0.pth").write_text("x"), "cannot be read")

    def test_a_checkpoint_that_holds_something_else(self):
        self.damaged(lambda c: torch.save([1], str(c / "det_state_dict_rank0.pth")), "holds a list, no dictionary")

    def test_a_checkpoint_without_the_engines(self):
        self.damaged(lambda c: (c / "model0" / "engine.pt").unlink(), "the engine found no checkpoint model0")


class TheContext(TrialTest):
    def test_from_config_is_for_debugging(self):
        context = det_ds.DeepSpeedTrialContext.from_config({"hyperparameters": {"a": 1, "global_batch_size": 8}, "data": {"u": 2}})
        self.assertEqual((context.get_hparam("a"), context.get_data_config(), context.get_trial_id(), context.get_experiment_id()),
                         (1, {"u": 2}, 0, 1))
        self.assertEqual((context.get_global_batch_size(), context.get_per_slot_batch_size(), context.get_initial_batch()), (8, 8, 0))
        with self.assertRaisesRegex(ValueError, "get_hparam\\('b'\\): .* they are a, global_batch_size"):
            context.get_hparam("b")
        for method, argument in ((context.set_stop_requested, 1), (context.set_enable_tensorboard_logging, "yes")):
            with self.assertRaisesRegex(AssertionError, "takes True or False"):
                method(argument)
        with self.assertRaisesRegex(Exception, "the training has not begun"):
            context.current_train_batch()
        self.assertEqual(context.device.type, "cuda" if torch.cuda.is_available() else "cpu")

    def test_the_profiler_leaves_its_traces(self):
        def profile(self):
            self.context.set_profiler(activities=[torch.profiler.ProfilerActivity.CPU],
                                      schedule=torch.profiler.schedule(wait=1, warmup=1, active=2))

        self.train(type("Profiled", (LineTrial,), {"after_wrapping": profile}), length=4)
        self.assertTrue(list((self.dir / "tensorboard").glob("*.json")))


if __name__ == "__main__":
    unittest.main()
