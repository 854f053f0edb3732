"""Callbacks, checkpoints and the context of a trial class: wants torch; on the stand-ins."""
import os
import random
import sys
import types
import unittest
from unittest import mock

from trial_support import LineTrial, TrialTest

import numpy as np
import torch

from determined import pytorch
from determined.errors import InvalidExperimentException
from determined.pytorch import deepspeed as det_ds


class Counter(pytorch.PyTorchCallback):
    """How often each hook was called, in order."""

    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name.startswith("on_") and name != "on_checkpoint_end":
            object.__getattribute__(self, "calls").append(name)
        return object.__getattribute__(self, name)


class CallbacksAndCheckpoints(TrialTest):
    def test_all_hooks_in_their_order(self):
        counter = Counter()
        self.train(type("Counted", (LineTrial,), {"callbacks": {"counter": counter}}), length=4)
        self.assertEqual([name for name in counter.calls if name != "on_checkpoint_end"], [
            "on_trial_startup", "on_trial_shutdown", "on_training_start", "on_training_epoch_start",
            "on_training_epoch_end", "on_training_workload_end", "on_validation_start", "on_validation_epoch_start",
            "on_validation_epoch_end", "on_validation_end", "on_checkpoint_save_start", "on_checkpoint_write_end",
            "on_checkpoint_upload_end"])

    def test_the_shutdown_comes_after_an_exception_too(self):
        calls = []

        class Tells(pytorch.PyTorchCallback):
            def on_trial_shutdown(self):
                calls.append("shutdown")

        def fail(self, *_):
            raise ValueError("the model's own")

        with self.assertRaisesRegex(ValueError, "the model's own"):
            self.train(type("Fails", (LineTrial,), {"callbacks": {"a": Tells(), "b": Tells()}, "train_batch": fail}))
        self.assertEqual(calls, ["shutdown", "shutdown"])

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
                return {"loss": self.micro_batch(iterator),
                        "draw": random.random() + np.random.rand() + torch.rand(1).item()}

        self.train(Draws, length=4, scheduling_unit=2)
        whole = self.reported("training")
        (self.dir / "metrics.jsonl").unlink()
        self.train(type("First", (Draws,), {"stops": True, "callbacks": {"keeps": Keeps()}}),
                   length=4, scheduling_unit=2)
        second = Keeps()
        self.train(type("Second", (Draws,), {"callbacks": {"keeps": second}}), length=4, scheduling_unit=2)
        self.assertEqual(self.reported("training"), whole)
        self.assertEqual(second.count, 2)

    def stop_at_once(self, kind, **config):
        def stop(self, iterator, epoch_idx, batch_idx):
            self.context.set_stop_requested(True)
            return LineTrial.train_batch(self, iterator, epoch_idx, batch_idx)

        self.train(type("Stops", (kind,), {"train_batch": stop}), length=4, scheduling_unit=1, **config)

    def test_a_stop_comes_before_the_validation_that_is_due(self):
        self.stop_at_once(LineTrial, min_validation_period=1)
        self.assertEqual(self.reported("validation"), [])
        self.train(LineTrial, length=2, min_validation_period=1)
        self.assertEqual([step for step, _ in self.reported("validation")], [1, 2])

    def test_a_stop_in_a_validation(self):
        class Enough(pytorch.PyTorchCallback):
            def on_validation_end(callback, metrics):
                trial.context.set_stop_requested(True)

        class Known(LineTrial):
            callbacks = {"enough": Enough()}

            def after_wrapping(self):
                nonlocal trial
                trial = self

        trial = None
        self.train(Known, length=4, min_validation_period=1)
        self.assertEqual(trial.engine.global_steps, 1)

    def damaged(self, change, words):
        self.stop_at_once(LineTrial)
        checkpoint = next(p for p in (self.dir / "checkpoints").iterdir() if p.is_dir())
        change(checkpoint)
        with self.assertRaisesRegex((InvalidExperimentException, AssertionError), words):
            self.train(LineTrial, length=4)

    def test_a_checkpoint_without_this_ranks_part(self):
        self.damaged(lambda c: (c / "det_state_dict_rank0.pth").unlink(), "has no det_state_dict_rank0.pth")

    def test_a_checkpoint_that_is_torn(self):
        self.damaged(lambda c: (c / "det_state_dict_rank0.pth").write_text("x"), "cannot be read")

    def test_a_checkpoint_that_holds_something_else(self):
        self.damaged(lambda c: torch.save([1], str(c / "det_state_dict_rank0.pth")), "holds a list")

    def test_a_checkpoint_of_fewer_engines(self):
        def two(self):
            self.context.wrap_model_engine(self.engine)

        with mock.patch.object(LineTrial, "after_wrapping", two), self.assertRaisesRegex(
                AssertionError, "it has the state of 1 engines, and the trial class wraps 2$"):
            self.stop_at_once(type("Stops", (LineTrial,), {"after_wrapping": lambda self: None}))
            self.train(LineTrial, length=4)

    def test_a_checkpoint_without_the_engines(self):
        self.damaged(lambda c: (c / "model0" / "engine.pt").unlink(), "there is no model0")


class TheContext(TrialTest):
    def test_from_config_is_for_debugging(self):
        context = det_ds.DeepSpeedTrialContext.from_config(
            {"hyperparameters": {"a": 1, "global_batch_size": 8}, "data": {"u": 2}})
        self.assertEqual((context.get_hparam("a"), context.get_data_config(), context.get_trial_id(),
                          context.get_experiment_id()), (1, {"u": 2}, 0, 1))
        self.assertEqual((context.get_global_batch_size(), context.get_per_slot_batch_size(),
                          context.get_initial_batch()), (8, 8, 0))
        with self.assertRaisesRegex(ValueError, "get_hparam\\('b'\\): .* they are a, global_batch_size"):
            context.get_hparam("b")
        for method, argument in ((context.set_stop_requested, 1), (context.set_enable_tensorboard_logging, "yes")):
            with self.assertRaisesRegex(AssertionError, "takes True or False"):
                method(argument)
        with self.assertRaisesRegex(Exception, "not begun"):
            context.current_train_batch()
        self.assertEqual(context.device.type, "cuda" if torch.cuda.is_available() else "cpu")

    def test_from_config_draws_a_value_of_each_choice_and_range(self):
        drawn = det_ds.DeepSpeedTrialContext.from_config({"hyperparameters": {
            "three": {"type": "const", "val": 3}, "choice": {"type": "categorical", "vals": ["a"]},
            "section": {"whole": {"type": "int", "minval": 2, "maxval": 2}},
            "fraction": {"type": "double", "minval": 0.5, "maxval": 0.5},
            "rate": {"type": "log", "base": 10, "minval": -2, "maxval": -2},
            "optimizer": {"type": "Adam", "params": {"lr": 0.1}}}}).get_hparams()
        self.assertEqual(drawn, {"three": 3, "choice": "a", "section": {"whole": 2}, "fraction": 0.5, "rate": 0.01,
                                 "optimizer": {"type": "Adam", "params": {"lr": 0.1}}})
        for wrong in ({"type": "const"}, {"type": "categorical", "vals": []},
                      {"type": "int", "minval": 2, "maxval": 1}):
            with self.assertRaisesRegex(InvalidExperimentException, "^hyperparameters.x is .*: %s has" % wrong["type"]):
                det_ds.DeepSpeedTrialContext.from_config({"hyperparameters": {"x": wrong}})

    def test_metrics_go_to_tensorboard_unless_switched_off(self):
        written = []

        class Writer:
            def __init__(self, folder):
                self.folder = folder

            def add_scalar(self, tag, value, step):
                written.append((os.path.basename(self.folder), tag, step))

            def flush(self):
                pass

        package = mock.patch.dict(sys.modules, {"torch.utils.tensorboard": types.SimpleNamespace(SummaryWriter=Writer)})
        package.start()
        self.addCleanup(package.stop)
        self.train(type("Reduced", (LineTrial,), {
            "after_wrapping": lambda self: self.context.wrap_reducer(len, "draws")}), length=2)
        # Two micro batches a batch: their metrics have a point for each, and the averages have the rest.
        self.assertEqual(written, [("tensorboard", f"Determined/{name}", step) for name, step in
                                   (("loss", -2), ("loss", -1), ("loss", 0), ("loss", 1), ("draws", 2),
                                    ("val_loss", 2), ("val_draws", 2))])
        written.clear()
        self.train(type("Quiet", (LineTrial,), {
            "after_wrapping": lambda self: self.context.set_enable_tensorboard_logging(False)}), length=2)
        self.assertEqual(written, [])

    def test_without_the_package_tensorboard_a_training_runs_and_a_writer_is_refused(self):
        package = mock.patch.dict(sys.modules, {"torch.utils.tensorboard": None})
        package.start()
        self.addCleanup(package.stop)
        trial = self.train(LineTrial, length=2)
        self.assertEqual([step for step, _ in self.reported("validation")], [2])
        with self.assertRaisesRegex(InvalidExperimentException, "the package tensorboard"):
            trial.context.get_tensorboard_writer()

    def test_the_profiler_leaves_its_traces(self):
        def profile(self):
            self.context.set_profiler(activities=[torch.profiler.ProfilerActivity.CPU],
                                      schedule=torch.profiler.schedule(wait=1, warmup=1, active=2),
                                      on_trace_ready=print)

        self.train(type("Profiled", (LineTrial,), {"after_wrapping": profile}), length=4)
        self.assertTrue(list((self.dir / "tensorboard").glob("*.json")))


if __name__ == "__main__":
    unittest.main()
