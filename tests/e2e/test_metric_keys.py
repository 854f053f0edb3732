"""What either generation of DeepSpeed's engine writes is read alike, and throughput and latency must agree."""
import json
import unittest

from support import CONFIG, HostTest

GENERATIONS = {"fwd/bwd": [], "forward/backward": ["--misbehave", "old_names", "--misbehave", "no_accumulation"]}


class MetricKeys(HostTest):
    def setUp(self):
        super().setUp()
        self.write_config({**CONFIG, "gradient_accumulation_steps": 4})

    def tune(self, name, metric, flags, *options):
        result = self.run_host(["--metric", metric, "--max-trials", 8, "--output-dir", name,
                                "--device-memory", "1GB", *options], self.command(*flags))
        self.assert_ok(result)
        trials = [t for t in self.show(self.dir / name)["trials"]
                  if t["outcome"] == "completed" and t["kind"] != "profile"]
        self.assertGreater(len(trials), 2)
        return result, trials

    def written_keys(self, name, trial):
        return set(json.loads((self.dir / name / f"trials/{trial['id']}/metrics.json").read_text()))

    def test_forward_and_backward_are_metrics_with_either_generation(self):
        for metric, canonical in (("forward", "forward"), ("bwd", "backward")):
            for generation, flags in GENERATIONS.items():
                name = metric + generation[:3]
                with self.subTest(metric=metric, generation=generation):
                    _, trials = self.tune(name, metric, flags)
                    self.assertTrue(set(generation.split("/")) <= self.written_keys(name, trials[0]))
                    best = json.loads((self.dir / name / "best_ds_metrics.json").read_text())
                    everyone = [t["metrics"][canonical] for t in self.show(self.dir / name)["trials"]
                                if t["metrics"] and canonical in t["metrics"]]
                    self.assertEqual(best[canonical], min(everyone))

    def test_every_metric_is_the_same_with_either_generation(self):
        studies = [self.tune(f"run{i}", "throughput", flags)[1] for i, flags in enumerate(GENERATIONS.values())]
        self.assertEqual(*map(len, studies))
        for new, old in zip(*studies):
            self.assertEqual((new["config"], set(new["metrics"])), (old["config"], set(old["metrics"])))
            for metric, value in new["metrics"].items():
                self.assertAlmostEqual(old["metrics"][metric], value, delta=1e-9 * value, msg=metric)

    def test_throughput_times_latency_is_the_batch(self):
        result, trials = self.tune("out", "throughput", [])
        for trial in trials:
            batch = trial["config"]["train_batch_size"]
            metrics = trial["metrics"]
            self.assertAlmostEqual(metrics["throughput"] * metrics["latency"], batch * 1e6, delta=batch)
        self.assertNotIn("do not agree", result.stdout + result.stderr)

    def test_a_product_that_is_something_else_is_kept_with_a_warning(self):
        result, trials = self.tune("out", "throughput", ["--misbehave", "mismatch"])
        self.assertRegex(result.stdout, r"us do not agree")
        written = json.loads((self.dir / f"out/trials/{trials[0]['id']}/metrics.json").read_text())
        for metric in ("throughput", "latency"):
            self.assertEqual(trials[0]["metrics"][metric], written[metric])


if __name__ == "__main__":
    unittest.main()
