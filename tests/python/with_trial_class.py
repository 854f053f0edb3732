"""Trial classes of the stand-in for determined, on the stand-in for deepspeed: wants torch. The loop and its ranks."""
import json
import os
import random
import shutil
import unittest

from trial_support import CONFIG, Line, LineTrial, TrialTest

import numpy as np
import torch
import deepspeed
from deepspeed import pipe

from determined import pytorch
from determined.errors import InvalidExperimentException


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
        self.assertEqual([step for step, _ in self.reported("training")], [5, 4, 8, 3])  # an epoch ends a stretch
        self.train(LineTrial, length=5, min_validation_period={"epochs": 1}, min_checkpoint_period=2,
                   perform_initial_validation=True, checkpoint_policy="none")
        self.assertEqual([step for step, _ in self.reported("validation")][-3:], [0, 4, 5])

    def test_the_policy_says_which_validations_leave_a_checkpoint(self):
        losses = iter([1.0, 2.0, 1.5] * 6)

        class Known(LineTrial):
            def evaluate_batch(self, iterator, batch_idx):
                next(iterator)
                return {"val_loss": self.now}

            def build_validation_data_loader(self):
                return pytorch.DataLoader(Line(4), batch_size=4)

            def train_batch(self, iterator, epoch_idx, batch_idx):
                self.now = next(losses)
                return {"loss": [self.micro_batch(iterator), self.micro_batch(iterator)][-1]}

            def after_wrapping(self):
                self.context.disable_auto_grad_accumulation()

        class Reduced(Known):
            """Its metric comes of a reducer, as a tensor."""

            def evaluate_batch(self, iterator, batch_idx):
                self.reducer.update(super().evaluate_batch(iterator, batch_idx)["val_loss"])
                return {}

            def after_wrapping(self):
                super().after_wrapping()
                self.reducer = self.context.wrap_reducer(torch.tensor, "val_loss", for_training=False)

        # The end is saved in any case.
        for policy, kind, saved in (("all", Known, [1, 2, 3]), ("best", Known, [1, 3]), ("none", Known, [3]),
                                    ("best", Reduced, [1, 3])):
            with self.subTest((policy, kind)):
                shutil.rmtree(self.dir / "checkpoints", ignore_errors=True)
                self.train(kind, length=3, min_validation_period=1, checkpoint_policy=policy)
                made = [json.loads((p / "metadata.json").read_text())["steps_completed"]
                        for p in (self.dir / "checkpoints").iterdir() if p.is_dir()]
                self.assertEqual(sorted(made), saved)

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

    def on_another_rank(self, **others):
        """LineTrial whose metrics another rank has, too, with these values beside its own of the same name."""
        def beside(context):
            alone = context.distributed.allgather

            def allgather(value):
                metrics = isinstance(value, list) and value and isinstance(value[0], dict)
                return alone(value) + ([[{**entry, **others} for entry in value]] if metrics else [])

            context.distributed.allgather = allgather

        class Beside(LineTrial):
            def after_wrapping(self):
                beside(self.context)

            def train_batch(self, *arguments):
                self.micro_batch(arguments[0])
                return {name: torch.tensor(3.0) for name in others}

            def evaluate_batch(self, iterator, batch_idx):
                next(iterator)
                return {name: torch.tensor(3.0) for name in others}

        self.train(Beside, searcher={"max_length": 2})
        return self.reported("training")[0][1], self.reported("validation")[0][1]

    def test_ranks_may_give_a_metric_other_shapes(self):
        # DeepSpeed's pipelines do: () on the last stage, (1,) on the others.
        for metrics in self.on_another_rank(one=torch.tensor([5.0]), two=torch.tensor([[4.0, 8.0]]), none=None):
            self.assertEqual(metrics, {"one": 4.0, "two": 4.5, "none": 3.0})

    def test_a_metric_that_is_no_number_on_another_rank_is_not_this_ranks(self):
        with self.assertRaisesRegex(InvalidExperimentException, "metric 'm' of evaluate_batch has no mean"):
            self.on_another_rank(m="x")
        self.assertEqual(self.reported("training")[0][1], {})

    def test_two_engines(self):
        class Two(LineTrial):
            def after_wrapping(self):
                other = torch.nn.Linear(1, 1)
                self.other = self.context.wrap_model_engine(deepspeed.initialize(
                    model=other, config={"train_batch_size": 2}, model_parameters=other.parameters())[0])

        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            trial = self.train(Two)
        self.assertIn("engine 2", logs.output[0])
        self.assertIn("micro batch 2", logs.output[0])
        self.assertEqual(trial.context.models, [trial.engine, trial.other])
        checkpoint, = (p for p in (self.dir / "checkpoints").iterdir() if p.is_dir())
        self.assertEqual(sorted(p.name for p in checkpoint.iterdir() if p.is_dir()), ["model0", "model1"])

    def test_epochs_are_reported(self):
        seen = []

        class Epochs(LineTrial):
            def train_batch(self, iterator, epoch_idx, batch_idx):
                context = self.context
                seen.append((epoch_idx, batch_idx, context.is_epoch_start(), context.is_epoch_end(),
                             context.current_train_epoch(), context.current_train_batch()))
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
        self.refused("has 1 micro batches", type("Short", (self.Pipeline,), {"samples": 4}))

    def test_a_part_that_does_not_fill_it_is_left_out(self):
        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            self.train(type("Odd", (self.Pipeline,), {"samples": 12}))
        self.assertIn("1 micro batches", logs.output[0])

    def test_it_is_timed_from_outside_since_its_engine_reports_nothing(self):
        config = {**CONFIG, "gradient_accumulation_steps": 2}
        path = self.begin_trial(config=config)
        with open(path) as file:
            kind = type("Tuned", (self.Pipeline,), {"config": json.load(file)})
        with self.assertRaises(SystemExit):
            self.train(kind)
        self.assertGreater(self.result()["throughput"], 0)

    def test_the_model_is_all_stages_of_one_replica(self):
        others = [(40, 30), (0, 0), (0, 0)]  # of the second stage, and of another replica's two; the first is frozen

        class Tuned(self.Pipeline):
            def __init__(self, context):
                super().__init__(context)
                for parameter in context.models[0].module.parameters():
                    parameter.requires_grad = False
                alone = context.distributed.allgather
                context.distributed.allgather = lambda value: alone(value) + (others if value == (2, 0) else [])

        path = self.begin_trial(model_info=True, config=CONFIG)
        with open(path) as file:
            Tuned.config = json.load(file)
        with self.assertRaises(SystemExit):
            self.train(Tuned)
        result = self.result("model_info.json")
        self.assertEqual((result["num_params"], result["trainable_num_params"]), (42, 30))
        self.assertNotIn("activation_mem_per_gpu", result)  # no stage has begun a forward pass


if __name__ == "__main__":
    unittest.main()
