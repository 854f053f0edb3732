"""A trial of a user's own whose model is a pipeline: which ranks read and report, its checkpoints, its restarts."""
import json
import signal
import unittest

from support import BUILD
from test_trial_api import TrialTest

CONFIG = {
    "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "pipeline": {"stages": 2},
    "optimizer": {"type": "Adam", "params": {"lr": 0.01}}, "zero_optimization": {"stage": 1},
}


class PipelineTrialTest(TrialTest):
    def setUp(self):
        super().setUp()
        self.write_config(CONFIG)

    def run_chain(self, *options, **how):
        return self.run_trial(*options, library="chain_trial", **how)


class Training(PipelineTrialTest):
    def test_the_last_stage_reports_and_both_ends_read(self):
        self.assert_ok(self.run_chain("--epochs", 2, "--metrics", "metrics.jsonl", hparams={"report": "built"}))
        training, validation = self.metrics("training"), self.metrics("validation")
        self.assertEqual(sorted(training), list(range(16)))  # 64 samples, 8 a step
        self.assertEqual(sorted(validation), [7, 15])
        self.assertEqual({metrics["rank"] for metrics in [*training.values(), *validation.values()]}, {1})
        self.assertLess(training[15]["loss"], training[0]["loss"])
        for rank in (0, 1):
            place = {"stage": rank, "data_parallel_rank": 0, "data_parallel_world_size": 1}
            self.assertEqual(json.loads((self.dir / f"built{rank}").read_text()), place)

    def test_a_stage_in_the_middle_reads_nothing_and_goes_on_all_the_same(self):
        self.write_config({**CONFIG, "pipeline": {"stages": 3}})
        self.assert_ok(self.run_chain("--steps", 3, "--metrics", "whole", ranks=3, hparams={"report": "built"}))
        self.assertEqual([(self.dir / f"built{rank}").exists() for rank in range(3)], [True, False, True])
        self.assertEqual({metrics["rank"] for metrics in self.metrics("training", "whole").values()}, {2})
        for steps in (2, 3):
            self.assert_ok(self.run_chain("--steps", steps, "--metrics", "parts", "--checkpoints", "ckpt", ranks=3))
        self.assertEqual(self.training_losses("parts"), self.training_losses("whole"))

    def test_each_stage_and_share_of_the_data_drops_other_values(self):
        self.write_config({**CONFIG, "pipeline": {"stages": 2, "partition": "uniform"}})
        self.assert_ok(self.run_chain("--steps", 2, ranks=4, hparams={"masks": "masks"}))
        masks = [(self.dir / f"masks{stage}").read_text().splitlines() for stage in (0, 1)]
        self.assertEqual([len(of_stage) for of_stage in masks], [16, 16])  # 2 ranks, 2 steps, 4 micro batches
        self.assertEqual(len({*masks[0], *masks[1]}), 32)

    def test_automatic_accumulation_is_refused_in_one_line(self):
        result = self.run_chain("--steps", 1, hparams={"fault": "accumulation"})
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("call disable_auto_grad_accumulation()", result.stderr)

    def test_a_validation_smaller_than_a_step_is_refused_in_one_line(self):
        self.write_config({**CONFIG, "gradient_accumulation_steps": 16})
        result = self.run_chain("--steps", 1)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("the validation data has 12 micro batches", result.stderr)


class Tuning(PipelineTrialTest):
    def test_the_host_tunes_it(self):
        command = self.command_of(library="chain_trial")
        self.assert_ok(self.run_host(["--searcher", BUILD / "plugins/libasha.so", "--max-trials", 3, "--slots", 2,
                                      "--slots-per-trial", 2, "--zero-stages", "1", "--output-dir", "out"], command))
        self.assertEqual({trial["outcome"] for trial in self.show(self.dir / "out")["trials"]}, {"completed"})
        best = json.loads((self.dir / "out/best_ds_metrics.json").read_text())
        self.assertGreater(best["throughput"], 0)


class Checkpoints(PipelineTrialTest):
    def test_a_killed_run_goes_on_at_the_right_batch_with_the_same_losses(self):
        self.assert_ok(self.run_chain("--steps", 12, "--metrics", "whole"))
        options = ["--checkpoints", "ckpt", "--checkpoint-every", 3, "--metrics", "parts"]
        self.signal_after("training 5 ", signal.SIGKILL, "--steps", 1000000, *options, library="chain_trial")
        done = self.latest()
        files = {path.name for path in (self.dir / f"ckpt/step-{done}/engine0").iterdir()}
        self.assertEqual(files, {"checkpoint.json", "stage_000_rank_00000.ckpt", "stage_001_rank_00000.ckpt"})
        steps = max(12, done + 2)
        self.assert_ok(self.run_chain("--steps", steps, *options))
        parts, whole = self.training_losses("parts"), self.training_losses("whole")
        self.assertEqual(sorted(parts), list(range(steps)))
        self.assertEqual({batch: parts[batch] for batch in whole}, whole)

    def test_training_goes_on_with_other_ranks_stages_and_zero(self):
        self.assert_ok(self.run_chain("--steps", 2, "--checkpoints", "ckpt"))
        cuts = [(4, 2, 0), (1, 1, 1)]  # ranks, pipeline stages, ZeRO stage; 8 samples a step
        for steps, (ranks, stages, zero) in enumerate(cuts, 3):
            self.write_config({**CONFIG, "gradient_accumulation_steps": 4 * stages // ranks,
                               "pipeline": {"stages": stages}, "zero_optimization": {"stage": zero}})
            self.assert_ok(self.run_chain("--steps", steps, "--checkpoints", "ckpt", "--metrics", "more", ranks=ranks))
        self.assertEqual(sorted(self.training_losses("more")), [2, 3])

    def test_a_damaged_stage_is_named_and_nothing_is_overwritten(self):
        self.assert_ok(self.run_chain("--steps", 1, "--checkpoints", "ckpt"))
        shard = self.dir / "ckpt/step-1/engine0/stage_001_rank_00000.ckpt"
        shard.write_bytes(shard.read_bytes()[:500])
        result = self.run_chain("--steps", 2, "--checkpoints", "ckpt")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("stage_001_rank_00000.ckpt is truncated", result.stderr)
        self.assertEqual(shard.stat().st_size, 500)
        self.assertFalse((self.dir / "ckpt/step-2").exists())


if __name__ == "__main__":
    unittest.main()
