"""show, report, serve and export of studies that are damaged, newer, gone or not to be written:
one line, nothing changed."""
import contextlib
import shutil
import signal
import sqlite3
import subprocess
import time

from support import HOST, PROJECT, HostTest
from waiting import wait_until

SIM = PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"
VIEWS = [["show"], ["show", "--json"], ["show", "--follow"], ["report"], ["serve"],
         *(["export", "--format", kind] for kind in ("csv", "json", "jsonl", "prometheus", "tensorboard", "mlflow"))]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class ViewsTest(HostTest):
    @classmethod
    def setUpClass(cls):
        cls.made = HostTest("run_host")
        cls.made.setUp()
        cls.addClassCleanup(cls.made.doCleanups)
        result = cls.made.run_host(["--runner", "sim", "--sim", SIM, "--max-trials", 4, "--output-dir", "study",
                                    "--quiet"], [])
        assert result.returncode == 0, result.stderr

    def setUp(self):
        super().setUp()
        self.study = self.dir / "study"
        shutil.copytree(self.made.dir / "study", self.study)

    def refused(self, view, part, statuses=(2, 4)):
        """The view ends with one line that holds `part`, and leaves every file as it was."""
        before = contents(self.study) if self.study.is_dir() else {}
        done = subprocess.run([HOST, view[0], "study", *view[1:]],
                              cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertIn(done.returncode, statuses, (view, done.stderr))
        self.assertEqual(len(done.stderr.splitlines()), 1, (view, done.stderr))
        self.assertIn(part, done.stderr, view)
        self.assertEqual(done.stdout, "", view)
        self.assertEqual(contents(self.study) if self.study.is_dir() else {}, before, view)

    def test_a_study_of_a_newer_version(self):
        with contextlib.closing(sqlite3.connect(self.study / "dsat.db")) as journal, journal:
            journal.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
        for view in VIEWS:
            self.refused(view, "use the version that wrote it")

    def test_a_damaged_study(self):
        data = bytearray((self.study / "dsat.db").read_bytes())
        data[4096:20000] = b"\xff" * (20000 - 4096)
        (self.study / "dsat.db").write_bytes(data)
        for view in VIEWS:
            self.refused(view, "dsat.db")

    def test_no_study(self):
        shutil.rmtree(self.study)
        for view in VIEWS:
            self.refused(view, "study")
        self.study.mkdir()
        for view in VIEWS:
            self.refused(view, "no dsat.db")

    def test_a_page_that_cannot_be_written(self):
        (self.study / "report.html").unlink()
        (self.study / "report.html").mkdir()
        self.refused(["report"], "report.html")
        self.refused(["report", "-o", "/proc/version"], "/proc/version")

    def test_a_page_on_standard_output_is_all_that_is_there(self):
        command = [HOST, "report", self.study, "-o", "/dev/stdout"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assert_ok(result)
        self.assertTrue(result.stdout.rstrip().endswith("</html>"), result.stdout[-200:])
        self.assertIn("/dev/stdout", result.stderr)

    def test_a_study_ends_well_though_its_page_cannot_be_written(self):
        (self.dir / "run/report.html").mkdir(parents=True)
        result = self.run_host(["--runner", "sim", "--sim", SIM, "--max-trials", 4, "--output-dir", "run"], [])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"no report.html: .*report.html")

    def test_a_page_is_left_by_a_study_that_is_killed(self):
        process = self.start_host(self.arguments(["--output-dir", "run", "--max-trials", 50],
                                                 self.command("--misbehave", "hang")))
        page = self.dir / "run/report.html"
        end = time.monotonic() + 60
        while not page.exists() and time.monotonic() < end:
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertIn("</html>", page.read_text())
        done = subprocess.run([HOST, "report", "run"], cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        checked = subprocess.run([HOST, "check", "run"], cwd=self.dir, capture_output=True, timeout=60)
        self.assertEqual(checked.returncode, 0)

    def test_show_follow_of_a_study_that_is_deleted(self):
        self.start_host(self.arguments(["--searcher", "random", "--output-dir", "run", "--max-trials", 500],
                                       self.command()))
        run = self.dir / "run"
        wait_until((run / "dsat.db").exists, "the study begins")
        follower = self.start_host([HOST, "show", "run", "--follow"])
        self.assertNotEqual(follower.stdout.readline(), "", "a trial that has ended")
        shutil.rmtree(run, ignore_errors=True)
        _, errors = follower.communicate(timeout=60)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn("run", errors)
