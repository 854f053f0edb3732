"""What a trial class must do, and what is refused in one line: wants torch; on the stand-ins."""
import os
import subprocess
import sys
import unittest

from support import PACKAGE
from trial_support import FIXTURES, Line, LineTrial, TrialTest

import torch

from determined import pytorch
from determined.errors import InvalidExperimentException
from determined.exec import harness
from determined.pytorch import deepspeed as det_ds


class Rules(TrialTest):
    def with_method(self, **methods):
        return type("Changed", (LineTrial,), methods)

    def test_what_train_batch_and_evaluate_batch_return(self):
        self.refused("train_batch returned a float",
                     self.with_method(train_batch=lambda self, i, e, b: self.micro_batch(i).item()))
        self.refused("evaluate_batch returned a Tensor",
                     self.with_method(evaluate_batch=lambda self, i, b: torch.ones(1)))
        self.refused("evaluate_batch returned \\['1'\\] after \\['0'\\]",
                     self.with_method(evaluate_batch=lambda self, i, b: {str(b): 1.0}))
        self.refused("metric 'm' of evaluate_batch has no mean",
                     self.with_method(evaluate_batch=lambda self, i, b: {"m": "x"}))

    def test_the_searchers_metric_is_one_of_the_validations(self):
        steps = []
        early = self.with_method(build_callbacks=lambda self: steps.append(self) or {})
        searcher = {"metric": "validation_loss", "max_length": 4}
        self.refused("searcher.metric is 'validation_loss', and the validation has val_loss", early,
                     searcher=searcher, min_validation_period=1)
        self.assertEqual(steps[0].engine.global_steps, 1, "the first validation says so")
        self.train(LineTrial, searcher={**searcher, "metric": "throughput"})  # what the study is tuned for

    def test_manual_accumulation_trains_all_micro_batches(self):
        def train_batch(self, iterator, epoch_idx, batch_idx):
            return {"loss": [self.micro_batch(iterator) for _ in range(self.count)][-1]}

        def disable(self):
            self.context.disable_auto_grad_accumulation()

        right = self.with_method(train_batch=train_batch, after_wrapping=disable, count=2)
        self.assertEqual(self.train(right, length=3).engine.global_steps, 3)
        self.refused("trained 1 of the 2", self.with_method(train_batch=train_batch, after_wrapping=disable, count=1))

    def test_unequal_validations_are_reported(self):
        def other(self):
            alone = self.context.distributed.allgather
            self.context.distributed.allgather = lambda mine: alone(mine) + ([(8, 3, 2)] if mine == (8, 2, 4) else [])

        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            self.train(self.with_method(after_wrapping=other))
        self.assertIn("2 to 3 batches of 2 to 4 samples; the fewest count", logs.output[0])

    def test_names_of_determined_that_mean_something_else(self):
        for name, words in (("DeepSpeedMPU", "use make_deepspeed_mpu"), ("DeepSpeedTrialController", "has no class")):
            with self.assertRaisesRegex(NotImplementedError, words):
                getattr(det_ds, name)(1)
        with self.assertRaisesRegex(NotImplementedError, "import it from determined.pytorch.deepspeed"):
            class Mine(pytorch.DeepSpeedTrial):
                pass
        with self.assertRaisesRegex(NotImplementedError, "has no class to replace"):
            LineTrial.trial_controller_class.from_trial(None)
        self.refused("has no class to replace", self.with_method(trial_controller_class=int))

    def test_loaders(self):
        plain = self.with_method(
            build_training_data_loader=lambda self: torch.utils.data.DataLoader(Line(), batch_size=4))
        self.refused("build_training_data_loader\\(\\) returned a DataLoader", plain)
        plain.after_wrapping = lambda self: self.context.disable_dataset_reproducibility_checks()
        self.assertEqual(self.train(plain, length=9).engine.global_steps, 9)  # more than it holds: it is repeated
        plain.build_validation_data_loader = lambda self: 3
        self.refused("build_validation_data_loader\\(\\) returned 3", plain)
        too_short = lambda self: pytorch.DataLoader(Line(4), batch_size=4)
        self.refused("has 1 micro batches", self.with_method(build_training_data_loader=too_short))
        with self.assertRaisesRegex(ValueError, "DataLoader: Line is empty"):
            pytorch.DataLoader(Line(0), batch_size=4, shuffle=True)
        too_few = lambda self: pytorch.DataLoader(Line(3), batch_size=4, drop_last=True)
        self.refused("has no batch", self.with_method(build_validation_data_loader=too_few))

    def test_engines_and_the_parallel_unit(self):
        unit = det_ds.ModelParallelUnit(0, 1, True, True)

        def twice(self):
            self.context.set_mpu(unit)
            self.context.set_mpu(unit)

        def early(self, context):
            context.set_mpu(unit)

        self.refused("set_mpu\\(\\) was called twice", self.with_method(after_wrapping=twice))
        self.refused("set_mpu\\(\\) before wrap_model_engine", self.with_method(__init__=early))
        self.refused("set_mpu\\(\\) got a int without data_parallel_rank",
                     self.with_method(after_wrapping=lambda self: self.context.set_mpu(3)))
        silent = det_ds.ModelParallelUnit(0, 1, False, True)
        self.refused("average_training_metrics",
                     self.with_method(after_wrapping=lambda self: self.context.set_mpu(silent)),
                     optimizations={"average_training_metrics": False})
        self.refused("wrapped no engine", self.with_method(__init__=lambda self, context: None))
        self.refused("wrap_model_engine\\(\\) got a Linear",
                     self.with_method(__init__=lambda self, context: context.wrap_model_engine(torch.nn.Linear(1, 1))))
        self.refused("wrap_model_engine",
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
        (self.dir / "model_def.py").write_text(
            "import determined.pytorch.deepspeed as d\nclass A(d.DeepSpeedTrial): pass\nclass B: pass\n")
        for name, words in (("model_def", "give module:Class"), ("nowhere:A", "no nowhere.py"),
                            ("model_def:C", "has no class C"),
                            ("model_def:B", "B is no DeepSpeedTrial")):
            with self.subTest(name), self.assertRaisesRegex(InvalidExperimentException, words):
                harness.load_trial_class(name)

    def last_line(self, mistake, top=""):
        """What a trial class with this line in its constructor, or at its file's top, ends with."""
        (self.dir / "model_def.py").write_text(
            f"from determined.pytorch.deepspeed import *\n{top}\nclass A(DeepSpeedTrial):\n"
            "    train_batch = evaluate_batch = build_training_data_loader = build_validation_data_loader = None\n"
            f"    def __init__(self, context):\n        context.get_hparam('x')\n        {mistake}\n")
        environment = dict(os.environ, PYTHONPATH=f"{PACKAGE}:{FIXTURES / 'packages'}")
        environment["DSAT_HPARAMS"] = self.write("hparams.json", {"x": 1})
        result = subprocess.run([sys.executable, "-m", "determined.exec.harness", "--train-entrypoint", "model_def:A"],
                                env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 1)
        self.assertEqual("Traceback" in result.stderr, "their own" in mistake, result.stderr)
        return result.stderr.splitlines()[-1]

    def test_an_error_is_one_line_with_its_place(self):
        for mistake, line in (
                ("context.set_mpu(None)", "set_mpu() before wrap_model_engine()"),
                ("context.get_hparam('y')", "get_hparam('y'): "),
                ("overwrite_deepspeed_config(3, {})", "overwrite_deepspeed_config: the base"),
                ("context.wrap_optimizer(3)",
                 "dsat's stand-in for Determined has no DeepSpeedTrialContext.wrap_optimizer: ")):
            with self.subTest(mistake):
                self.assertIn(f"model_def.py:7: {line}", self.last_line(mistake))
        last = self.last_line("pass", "from determined.experimental import client")
        self.assertIn("model_def.py:2: ", last)
        self.assertIn("has no determined.experimental: ", last)

    def test_an_error_of_the_scripts_own_keeps_its_traceback(self):
        self.assertEqual(self.last_line("raise ValueError('their own')"), "ValueError: their own")

    def test_overwrite_deepspeed_config(self):
        base = {"a": 1, "nested": {"b": 2, "c": [1]}}
        changed = det_ds.overwrite_deepspeed_config(base, {"nested": {"c": [2]}})
        self.assertEqual(changed, {"a": 1, "nested": {"b": 2, "c": [2]}})
        self.assertEqual(det_ds.overwrite_deepspeed_config(self.write("ds.json", base), {"a": 3})["a"], 3)
        for arguments in ((3, {}), ({}, 3), ([], {})):
            with self.subTest(arguments), self.assertRaisesRegex(TypeError, "overwrite_deepspeed_config"):
                det_ds.overwrite_deepspeed_config(*arguments)
        with self.assertRaisesRegex(ValueError, "is there twice"):
            det_ds.overwrite_deepspeed_config(self.write("twice.json", '{"a": 1, "a": 2}'), {})


if __name__ == "__main__":
    unittest.main()
