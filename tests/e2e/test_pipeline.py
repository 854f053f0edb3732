"""The number of pipeline stages as an axis of a study: each trial's batch follows its own data-parallel size."""
import json
import unittest

from support import BUILD, HostTest

TRAINING = [str(BUILD / "dsat-trial"), "--model", "gpt", "--layers", "2", "--hidden", "64", "--heads", "2",
            "--seq", "16", "--vocab", "64", "--ranks", "2", "--device-memory", "64MiB",
            "--deepspeed_config", "ds_config.json"]


class PipelineTest(HostTest):
    def setUp(self):
        super().setUp()
        self.write_config({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2,
                           "optimizer": {"type": "Adam", "params": {"lr": 0.001}}})

    def study(self, space, *more):
        (self.dir / "space.json").write_text(json.dumps(space))
        return self.run_host(["--space", "space.json", "--slots", "2", "--max-micro-batch", "2",
                              "--output-dir", "run", *more], TRAINING)

    def test_both_numbers_of_stages_are_trained(self):
        self.assert_ok(self.study({"pipeline.stages": [1, 2]}, "--zero-stages", "0",
                                  "--searcher", BUILD / "plugins/libgrid.so", "--max-trials", "10"))
        measured = [trial for trial in self.show("run")["trials"]
                    if trial["outcome"] == "completed" and "throughput" in (trial["metrics"] or {})]
        found = set()
        for trial in measured:
            config = trial["config"]
            stages = config.get("pipeline", {}).get("stages", 1)
            found.add(stages)
            size = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * 2 // stages
            self.assertEqual(config["train_batch_size"], size)
        self.assertEqual(found, {1, 2})
        self.assertEqual({trial["outcome"] for trial in self.show("run")["trials"]}, {"completed"})

    def test_stages_that_do_not_divide_the_slots_are_refused_before_anything_runs(self):
        result = self.study({"pipeline.stages": [1, 3]})
        self.assertEqual(result.returncode, 2)
        self.assertIn("pipeline.stages lists 3", result.stderr)
        self.assertFalse((self.dir / "run").exists())


if __name__ == "__main__":
    unittest.main()
