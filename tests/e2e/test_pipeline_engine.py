"""Scripts that train DeepSpeed's pipelines, on the stand-in for it: two stages in two processes."""
import json
import os
import subprocess
import unittest

from support import FIXTURES, HOST, HostTest

SCRIPT = """import argparse
import itertools
import json

import torch
import deepspeed
from deepspeed.pipe import PipelineModule

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank")
parser.add_argument("--deepspeed_config")
with open(parser.parse_args().deepspeed_config) as file:
    config = json.load(file)
deepspeed.init_distributed()
torch.manual_seed(1)
layers = [torch.nn.Linear(4, 4) for _ in range(%(layers)d)] + [torch.nn.Linear(4, 1)]
model = PipelineModule(layers, num_stages=%(stages)s, loss_fn=torch.nn.functional.mse_loss)
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
micro_batch = engine.train_micro_batch_size_per_gpu()
data = itertools.repeat((torch.ones(micro_batch, 4), torch.ones(micro_batch, 1)))
for step in itertools.count(1):  # the trial ends it
%(step)s
    engine.train_batch(data)
"""


class Pipelines(HostTest):
    def setUp(self):
        super().setUp()
        self.write_config({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2})

    def study(self, *options, status=0, stages="config.get('pipeline', {}).get('stages', 1)", layers=3, step=""):
        (self.dir / "script.py").write_text(SCRIPT % {"stages": stages, "layers": layers, "step": step})
        environment = {**os.environ, "PYTHONPATH": str(FIXTURES / "packages"), "STAND_IN_GLOO": "1",
                       "STAND_IN_SITE": "1", "OMP_NUM_THREADS": "1", "PATH": f"{FIXTURES / 'bin'}:{os.environ['PATH']}"}
        result = subprocess.run(
            [HOST, "--slots", "2", "--max-micro-batch", "2", "--metric", "throughput", "--output-dir", "run",
             *map(str, options), "--", "deepspeed", "--num_gpus", "2", "script.py", "--deepspeed_config",
             "ds_config.json"], cwd=self.dir, env=environment, capture_output=True, text=True, timeout=240)
        self.assert_ok(result, status)
        return result, self.show("run")["trials"]

    def test_stages_accumulation_and_micro_batch_are_tuned(self):
        (self.dir / "space.json").write_text(json.dumps({"pipeline.stages": [1, 2],
                                                         "gradient_accumulation_steps": [1, 2]}))
        _, trials = self.study("--space", "space.json", "-z", "0", "--searcher", "grid", "--max-trials", "9")
        self.assertEqual({trial["outcome"] for trial in trials}, {"completed"}, trials)
        self.assertEqual(self.show("run")["profile"]["num_params"], 3 * (4 * 4 + 4) + 4 + 1)
        measured = [trial for trial in trials if "throughput" in trial["metrics"]]
        for trial in measured:
            self.assertEqual(trial["metrics"]["latency_steps"], 3)  # of the window; the warm-up does not count
        seen = {(t["config"].get("pipeline", {}).get("stages", 1), t["config"]["gradient_accumulation_steps"],
                 t["config"]["train_micro_batch_size_per_gpu"]) for t in measured}
        self.assertLessEqual({1, 2}, {stages for stages, _, _ in seen})
        self.assertLessEqual({1, 2}, {accumulation for _, accumulation, _ in seen})
        self.assertLessEqual({1, 2}, {micro_batch for _, _, micro_batch in seen})

    def test_stages_that_the_configuration_does_not_name(self):
        _, trials = self.study("-z", "0", "--max-trials", "4", stages=2)
        self.assertEqual(trials[-1]["outcome"], "completed")
        self.assertNotIn("train_batch_size", json.loads((self.dir / "run/best_ds_config.json").read_text()))

    def refused(self, words, *options, **how):
        result, trials = self.study(*options, status=1, **how)
        self.assertIn(words, result.stderr)
        self.assertNotIn("completed", [trial["outcome"] for trial in trials[1:]])  # the first may count parameters

    def test_stages_that_do_not_divide_the_ranks(self):
        self.refused("RuntimeError: num_stages (3) must divide distributed world size (2)", "-z", "0", stages=3)

    def test_a_stage_of_zero_that_pipelines_do_not_take(self):
        self.write_config({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}})
        self.refused("ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism", "-z", "2", stages=2)

    def test_a_stage_that_raises(self):
        step = "    if engine.stage_id == 1 and step == 3: raise ValueError('this stage cannot go on')"
        self.refused("ValueError: this stage cannot go on", "-z", "0", stages=2, step=step)


if __name__ == "__main__":
    unittest.main()
