"""Checkpoints of trials of a user's own: a run that goes on, damaged files, and requests to stop."""
import signal
import unittest

from test_trial_api import CONFIG, TrialTest


class Checkpoints(TrialTest):
    def test_a_killed_run_goes_on_at_the_right_batch_with_the_same_losses(self):
        self.assert_ok(self.run_trial("--steps", 12, "--metrics", "whole"))
        # No end in sight: it is killed between two checkpoints.
        options = ["--checkpoints", "ckpt", "--checkpoint-every", 3, "--metrics", "parts"]
        self.signal_after("training 5 ", signal.SIGKILL, "--steps", 1000000, *options, hparams={"diary": "diary"})
        done = self.latest()
        steps = max(12, done + 2)
        self.assert_ok(self.run_trial("--steps", steps, *options, hparams={"diary": "diary"}))
        self.assertIn(f"loading ckpt/step-{done} steps 0", self.diary())  # before the callback's own state is back
        self.assertIn(f"startup {done} steps {done}", self.diary())
        parts, whole = self.training_losses("parts"), self.training_losses("whole")
        self.assertEqual(sorted(parts), list(range(steps)))
        self.assertEqual({batch: parts[batch] for batch in whole}, whole)

    def test_training_goes_on_at_another_size_and_stage(self):
        self.assert_ok(self.run_trial("--steps", 3, "--checkpoints", "ckpt", hparams={"diary": "diary"}))
        self.write_config({**CONFIG, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}})
        self.assert_ok(self.run_trial("--steps", 5, "--checkpoints", "ckpt", "--metrics", "more",
                                      ranks=1, hparams={"diary": "diary"}))
        self.assertEqual(sorted(self.training_losses("more")), [3, 4])

    def test_bad_checkpoints_are_named_and_kept(self):
        self.write_config({**CONFIG, "train_batch_size": 4})
        self.assert_ok(self.run_trial("--steps", 2, "--checkpoints", "ckpt", ranks=1))
        trial = self.dir / "ckpt/step-2/trial.json"
        whole = trial.read_text()
        cases = {"truncated": whole[:40], "format 7": whole.replace('"format": 2', '"format": 7'),
                 '"OtherTrial"': whole.replace("PointsTrial", "OtherTrial"),
                 "'batch'": whole.replace('"batch"', '"bitch"')}
        for what, text in cases.items():
            with self.subTest(what):
                trial.write_text(text)
                result = self.run_trial("--steps", 4, "--checkpoints", "ckpt", ranks=1)
                self.assertNotEqual(result.returncode, 0)
                last = result.stderr.splitlines()[-1]
                self.assertIn("trial.json", last)
                self.assertIn("" if what == "truncated" else what, last)
                self.assertEqual(trial.read_text(), text)
                self.assertNotIn("training 3", result.stdout)

    def test_callback_states_of_other_ranks_are_named(self):
        self.assert_ok(self.run_trial("--steps", 2, "--checkpoints", "ckpt", hparams={"diary": "diary"}))
        (self.dir / "ckpt/step-2/callbacks.rank1.json").unlink()
        refused = self.run_trial("--steps", 4, "--checkpoints", "ckpt", hparams={"diary": "diary"})
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("callbacks.rank1.json: missing, it has the callbacks' states of rank 1",
                      refused.stderr.splitlines()[-1])
        self.write_config({**CONFIG, "gradient_accumulation_steps": 4})
        alone = self.run_trial("--steps", 4, "--checkpoints", "ckpt", ranks=1, hparams={"diary": "diary"})
        self.assert_ok(alone)
        self.assertIn("states of 2 ranks, and this run has 1: those of rank 1 and after it are left out", alone.stderr)

    def test_a_lost_name_of_the_latest_checkpoint_is_mended(self):
        self.write_config({**CONFIG, "train_batch_size": 4})
        self.assert_ok(self.run_trial("--steps", 2, "--checkpoints", "ckpt", ranks=1))
        (self.dir / "ckpt/latest.json").unlink()
        result = self.run_trial("--steps", 4, "--checkpoints", "ckpt", ranks=1)
        self.assert_ok(result)
        self.assertIn("going on from step-2", result.stderr)
        self.assertEqual(self.latest(), 4)
        again = self.run_trial("--steps", 4, "--checkpoints", "ckpt", ranks=1)
        self.assertIn("4 steps of 4", again.stdout)

    def test_a_checkpoint_that_has_all_steps_says_so_after_one_step_too(self):
        self.write_config({**CONFIG, "train_batch_size": 4})
        first, again = (self.run_trial("--steps", 1, "--checkpoints", "ckpt", ranks=1) for _ in range(2))
        for result in (first, again):
            self.assert_ok(result)
        self.assertNotIn("nothing is left to train", first.stdout)
        self.assertIn("nothing is left to train", again.stdout)
        self.assertIn("1 steps of 1", again.stdout)

    def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(self):
        (self.dir / "ckpt").write_text("a file")
        result = self.run_trial("--steps", 2, "--checkpoints", "ckpt")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--checkpoints ckpt: the folder", result.stderr.splitlines()[-1])
        self.assertNotIn("training", result.stdout)

    def test_a_request_to_stop_finishes_the_step_and_saves(self):
        self.assert_ok(self.run_trial("--steps", 100, "--checkpoints", "ckpt", hparams={"fault": "stop"}))
        self.assertEqual(self.latest(), 4)

    def test_sigterm_asks_for_the_same(self):
        status, stderr = self.signal_after("training 2 ", signal.SIGTERM, "--steps", 1000000, "--checkpoints", "ckpt",
                                           hparams={"diary": "diary"})
        self.assertEqual(status, 0, stderr)
        done = self.latest()
        for rank in (0, 1):
            self.assertEqual(self.diary(rank)[-1], "shutdown")
            self.assertIn(f"stepped {done - 1} loss", self.diary(rank))


if __name__ == "__main__":
    unittest.main()
