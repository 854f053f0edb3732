"""Trials of a user's own that go on at another size."""
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
        self.assertIn("nothing is left to train", self.run_trial(*options, ranks=1).stdout)


if __name__ == "__main__":
    unittest.main()
