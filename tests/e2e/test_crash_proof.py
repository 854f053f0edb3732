"""Whatever kills the host, and whatever happens to the journal, nothing that was found is lost. A sample;
bench/host has the whole rounds."""
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
import shutil
import unittest

from support import BUILD, PROJECT, HostTest

sys.path.insert(0, str(PROJECT / "bench/host"))
import crash_support  # noqa: E402
import damaged_journals  # noqa: E402
import kill_rounds  # noqa: E402
import power_loss  # noqa: E402


class CrashProof(HostTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="dsat-crash-")
        cls.trial = crash_support.build_trial(cls.folder)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def study(self, *options, trial=(), searcher="random", max_trials=12):
        return crash_support.Study(BUILD, self.trial, self.dir / "study",
                                   ["--searcher", searcher, "--max-trials", max_trials, "--slots", 2,
                                    "--slots-per-trial", 1, *options],
                                   ["--ms", 5, *trial])

    def killed_at(self, point, *options, **how):
        study = self.study(*options, **how)
        process = study.spawn(DSAT_FAULT=point)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        return study

    def test_the_summary_is_there_before_the_journal_says_that_the_study_has_ended(self):
        study = self.killed_at("close.committed")
        summary = (study.run / "summary.txt").read_text()
        self.assertIn("best:", summary)
        self.assertIn("ended:", summary)
        again = self.study().spawn(study.go_on)
        again.communicate(timeout=120)
        self.assertEqual(again.returncode, 0)
        self.assertEqual((study.run / "summary.txt").read_text(), summary)

    def killed_in_search(self):
        """A study that was killed when a trial of its search had ended, however many turns that takes: most of its
        search is still to come."""
        study = self.killed_at("turn.before_act:8", max_trials=40)
        for turn in range(3, 13):  # on a busy machine a timer may make a turn too
            if any(trial["kind"] == "search" for trial in crash_support.finished(study.trials()).values()):
                return study
            process = study.spawn(study.go_on, DSAT_FAULT=f"turn.before_act:{turn}")
            process.communicate(timeout=120)
            self.assertEqual(process.returncode, -signal.SIGKILL)
        self.fail("no trial of the search has ended")

    def test_random_kills_lose_nothing(self):
        rounds = kill_rounds.Rounds(BUILD, self.dir)
        rounds.random_kills(8, seed=3)
        self.assertEqual(dict(rounds.tally), {}, rounds.tally.lines)

    def test_a_kill_at_each_point_of_the_turn_loses_nothing(self):
        rounds = kill_rounds.Rounds(BUILD, self.dir)
        kills = rounds.kills_at_points(searchers=("random",), passings=(2,))
        self.assertEqual(dict(rounds.tally), {}, rounds.tally.lines)
        self.assertGreaterEqual(kills, 12, "six points, one trial at once and eight")

    def test_power_losses_lose_nothing(self):
        losses = power_loss.PowerLoss(BUILD, self.dir, trials=8)
        losses.rounds(4, seed=5)
        self.assertEqual(dict(losses.tally), {}, losses.tally.lines)
        self.assertGreater(losses.counts["resumed"], 0)

    def test_damaged_journals_are_refused_in_one_line(self):
        damaged = damaged_journals.Damaged(BUILD, self.dir)
        for number in range(8):
            damaged.round(number, seed=7)
        self.assertEqual(dict(damaged.tally), {}, damaged.tally.lines)

    def test_a_journal_without_one_row_is_made_anew_and_nothing_runs_again(self):
        study = self.study("--max-concurrent-trials", 1)
        self.assertEqual(study.finish()[0], 0)
        before, ran = study.decisions(), len(study.ledger_lines())
        (study.run / "dsat.db").write_bytes(b"")
        self.assert_ok(study.command("check", "run"), 4)
        self.assert_ok(study.command("check", "run", "--repair"))
        self.assertEqual(study.finish()[0], 0)
        self.assertEqual(study.decisions(), before)
        self.assertEqual(len(study.ledger_lines()), ran)

    def test_a_host_killed_at_its_start_leaves_a_folder_that_the_next_start_takes(self):
        for point in ("start.folder", "start.locked", "journal.written"):
            study = self.killed_at(point + ":1")
            self.assertFalse(study.exists())
            self.assertEqual(study.finish()[0], 0, point)
            shutil.rmtree(study.run)

    def test_what_outlived_host_and_launcher_is_ended_before_anything_runs(self):
        study = self.study(trial=["--child", "--ms", 2000])
        process = study.spawn()
        deadline = time.monotonic() + 60
        while ("child", "0") not in study.ledger_lines() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGSTOP)  # or it would see to the trial of a launcher that ends
        for pid in crash_support.processes_of(f"{BUILD.resolve()}/dsat-launch"):
            if pid in study.processes():
                os.kill(pid, signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        orphans = crash_support.processes_of(f"DSAT_TRIAL_MARK={study.run}/trials/0#1")
        self.assertNotEqual(orphans, [])
        resumed = study.command("resume", "run", "--time-budget", "1s")
        self.assertIn("had outlived their host", resumed.stdout + resumed.stderr)
        self.assertEqual(set(orphans) & set(study.processes()), set())
        self.assertEqual(crash_support.wait_until_none(study), [])

    def test_commands_and_variables_are_for_their_owner_alone(self):
        study = self.killed_at("turn.after_act:9")
        self.assertEqual(study.run.stat().st_mode & 0o777, 0o700)
        self.assertEqual(study.finish()[0], 0)
        for name in ("dsat.db", "best_cmd.txt"):
            self.assertEqual((study.run / name).stat().st_mode & 0o077, 0, name)

    def test_another_searcher_takes_over_all_that_ended(self):
        study = self.killed_in_search()
        before = crash_support.finished(study.trials())
        result = study.command("resume", "run", "--searcher", "asha", "--max-rungs", "2", "--quiet")
        self.assert_ok(result)
        self.assertEqual(crash_support.lost_between(list(before.values()), study.trials()), [])
        database = sqlite3.connect(study.run / "dsat.db")
        rows = database.execute("SELECT event FROM events WHERE phase = 'searcher' ORDER BY seq")
        starts = [json.loads(row[0]) for row in rows if json.loads(row[0])["event"] == "start"]
        database.close()
        known = {one["trial"] for one in starts[-1]["study"]["observations"]}
        shown = json.loads(study.command("show", "run", "--json").stdout)
        self.assertEqual([one.split()[0].split(".")[-1] for one in shown["study"]["searchers"]], ["random", "asha"])
        measured = {i for i, trial in before.items() if trial["duplicate_of"] is None and trial["kind"] == "search"}
        self.assertLessEqual(measured, known)
        self.assertEqual(study.counted_twice(), [])

    def test_a_study_that_was_taken_over_resumes_after_a_kill(self):
        study = self.killed_in_search()
        for point in ("commit.after:1", "turn.before_act:3"):  # before its start event, and after
            process = study.spawn([*study.go_on, "--searcher", "asha"], DSAT_FAULT=point)
            process.communicate(timeout=120)
            self.assertEqual(process.returncode, -signal.SIGKILL, point)
        self.assertEqual(study.finish()[0], 0)
        self.assertEqual(study.command("check", "run").returncode, 0)
        self.assertEqual(study.counted_twice(), [])

    def test_best_writes_what_was_found(self):
        study = self.killed_at("turn.before_act:10")
        (study.run / "best_ds_config.json").unlink(missing_ok=True)
        result = study.command("best", "run", "--json")
        self.assert_ok(result)
        best = json.loads(result.stdout)
        self.assertEqual(json.loads((study.run / "best_ds_config.json").read_text()), best["config"])
        result = study.command("best", "run")
        self.assert_ok(result)
        self.assertEqual(json.loads(result.stdout), best["config"])
        self.assertIn("train with: ", result.stderr)
        other = next(t for t in study.trials()
                     if t["outcome"] == "completed" and t["id"] != best["trial"] and "throughput" in t["metrics"])
        result = study.command("best", "run", "--trial", other["id"], "--json")
        self.assert_ok(result)
        self.assertEqual(json.loads((study.run / "best_ds_config.json").read_text())["train_micro_batch_size_per_gpu"],
                         other["config"]["train_micro_batch_size_per_gpu"])
        count = len(study.trials())
        result = study.command("best", "run", "--trial", count)
        self.assert_ok(result, 2)
        self.assertIn(f"no trial {count}", result.stderr)

    def test_a_study_whose_journal_is_deleted_ends_with_status_4(self):
        study = self.study(trial=["--ms", 300])
        process = study.spawn()
        deadline = time.monotonic() + 60
        while not study.ledger_lines() and time.monotonic() < deadline:
            time.sleep(0.02)
        for name in ("dsat.db", "dsat.db-wal", "dsat.db-shm"):
            (study.run / name).unlink(missing_ok=True)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, error)
        self.assertIn("was deleted or replaced", error)
        self.assertEqual(study.processes(), [])

    def test_a_foreign_lock_is_waited_for(self):
        study = self.study("--max-concurrent-trials", 1)
        process = study.spawn()
        deadline = time.monotonic() + 60
        while not study.ledger_lines() and time.monotonic() < deadline:
            time.sleep(0.02)
        database = sqlite3.connect(study.run / "dsat.db", timeout=30, isolation_level=None)
        database.execute("BEGIN IMMEDIATE")
        with self.assertRaises(Exception):
            process.wait(timeout=7)  # longer than a study waited once; there is no event to wait for
        database.execute("ROLLBACK")
        database.close()
        _, error = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, error)
        self.assertIn("holds a lock", (study.folder / "output").read_text() + error)


if __name__ == "__main__":
    unittest.main()
