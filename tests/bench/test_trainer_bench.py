"""The trainer beside PyTorch: the bench's Python model is the trainer's own, and its intervals are right."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench" / "trainer"
sys.path.insert(0, str(BENCH))
import ratios  # noqa: E402

SHAPE = "--layers 2 --hidden 32 --heads 2 --seq 16 --vocab 64 --steps 6".split()


class SameModel(unittest.TestCase):
    def test_losses_are_those_of_pytorch(self):
        env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        python = subprocess.run(["/usr/bin/python3", str(BENCH / "gpt.py"), *SHAPE, "--micro-batch", "2"], env=env,
                                capture_output=True, text=True, check=True)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
            json.dump({"train_micro_batch_size_per_gpu": 2}, config)
            config.flush()
            program = pathlib.Path(os.environ["DSAT_BUILD_DIR"]) / "dsat-trial"
            native = subprocess.run([program, "--model", "gpt", *SHAPE, "--deepspeed_config", config.name], env=env,
                                    capture_output=True, text=True, check=True)
        expected = json.loads(python.stdout)["losses"]
        losses = [float(loss) for loss in re.findall(r"loss (\S+)", native.stdout)]
        self.assertEqual(len(losses), 6)
        for loss, other in zip(losses, expected):
            self.assertAlmostEqual(loss, other, delta=1e-5 * other)
        self.assertNotAlmostEqual(losses[0], losses[-1], places=4)


class Ratios(unittest.TestCase):
    def test_the_interval_is_made_of_order_statistics(self):
        # 15 values: 1 - 2 P(at most 3 of 15 heads) = 0.965, and with 4 it would be 0.882.
        self.assertEqual(ratios.interval(range(1, 16)), (4, 12))
        self.assertEqual(ratios.interval([5]), (5, 5))
        self.assertEqual(ratios.interval([3, 1, 2]), (1, 3))

    def test_a_limit_is_missed_only_if_the_whole_interval_is_beyond_it(self):
        times = [1.2] * 15
        self.assertFalse(ratios.Ratio("slow", times, [1.0] * 15, 1.1).held)
        self.assertTrue(ratios.Ratio("fast", times, [1.0] * 15, 1.3).held)
        self.assertTrue(ratios.Ratio("noisy", [1.0] * 4 + times[4:], [1.0] * 15, 1.1).held)


if __name__ == "__main__":
    unittest.main()
