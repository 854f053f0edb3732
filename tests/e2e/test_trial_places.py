"""Trials of a user's own that go on at another size, and that are measured in unusual loops."""
import json
import unittest

from test_trial_api import CONFIG, TrialTest


class Places(TrialTest):
    def test_a_pass_ends_where_it_ends_at_another_size(self):
        # Ten samples: on two ranks a pass is filled up to twelve.
        self.write_config({**CONFIG, "train_batch_size": 2, "gradient_accumulation_steps": 1})
        hparams = {"points": 10}
        self.assert_ok(self.run_trial("--steps", 12, "--metrics", "alone", ranks=1, hparams=hparams))
        self.write_config({**CONFIG, "train_batch_size": 4, "gradient_accumulation_steps": 1})
        self.assert_ok(self.run_trial("--steps", 6, "--checkpoints", "ckpt", hparams=hparams))  # two passes
        self.write_config({**CONFIG, "train_batch_size": 2, "gradient_accumulation_steps": 1})
        self.assert_ok(self.run_trial("--steps", 8, "--checkpoints", "ckpt", "--metrics", "more", ranks=1,
                                      hparams=hparams))
        alone, more = ([metrics["first"] for _, metrics in sorted(self.metrics("training", name).items())]
                       for name in ("alone", "more"))
        self.assertEqual(more, alone[10:12])

    def test_epochs_end_where_they_would_have_ended_at_another_size(self):
        # An epoch has 8 steps on two ranks, and 16 on one.
        self.assert_ok(self.run_trial("--steps", 11, "--checkpoints", "ckpt"))
        self.write_config({**CONFIG, "train_batch_size": 4})
        options = ["--epochs", 2, "--checkpoints", "ckpt", "--metrics", "more"]
        self.assert_ok(self.run_trial(*options, ranks=1, hparams={"diary": "diary"}))
        self.assertEqual(sorted(self.metrics("training", "more")), list(range(11, 21)))
        self.assertEqual([line for line in self.diary() if line.startswith("epoch")], ["epoch ended 1"])
        self.assertIn("nothing is left", self.run_trial(*options, ranks=1).stdout)


class Measured(TrialTest):
    def measured(self, **hparams):
        tuning = {"enabled": True, "metric_path": str(self.dir / "metrics.json"), "start_profile_step": 1,
                  "end_profile_step": 3}
        self.write_config({**CONFIG, "autotuning": tuning})
        result = self.run_trial(hparams={"own_loop": True, **hparams})
        self.assert_ok(result)
        return json.loads((self.dir / "metrics.json").read_text()), result.stderr

    def test_every_forward_before_a_backward_counts(self):
        flops = [metrics["FLOPS_per_gpu"] * metrics["latency"]
                 for metrics, _ in (self.measured(), self.measured(two_forwards=True))]
        self.assertAlmostEqual(flops[1] / flops[0], 2, places=3)

    def test_two_engines_are_measured_from_end_to_end_with_a_line_about_it(self):
        metrics, errors = self.measured()
        self.assertLess(metrics["latency"], metrics["wall_latency"])
        self.assertEqual(errors, "")
        metrics, errors = self.measured(two_engines=True)
        self.assertEqual(metrics["latency"], metrics["wall_latency"])
        self.assertRegex(errors, r"\A.*warning: the trial has a second engine: .* peak_memory is of all\n\Z")


if __name__ == "__main__":
    unittest.main()
