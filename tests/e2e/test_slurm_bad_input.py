"""What a study on Slurm needs is checked before its first trial: one line, status 2, nothing left behind."""
import pathlib
import shutil
import tempfile

from slurm_support import SMALL, SlurmTest


class Refused(SlurmTest):
    def refused(self, options, *parts, in_allocation=None):
        result = self.run_slurm("run", [*SMALL, "--slots-per-trial", "1", *options], in_allocation=in_allocation)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertFalse((self.dir / "run").exists())
        self.assertEqual(self.jobs(), [])

    def test_what_slurm_would_refuse(self):
        jobs = ["--runner", "slurm"]
        self.refused([*jobs, "--partition", "nope"], "Invalid partition name specified", "--partition=nope")
        self.refused([*jobs, "--gres", "gpu:9"], "Requested node configuration is not available", "--gres=gpu:9")
        self.refused([*jobs, "--gres", "tpu"], "--gres=tpu:1")
        self.refused([*jobs, "--constraint", "a100"], "--constraint=a100")
        self.refused([*jobs, "--slurm-option=--no-such-word"], "no-such-word")

    def test_times_and_options(self):
        self.refused(["--runner", "slurm", "--job-time", "3x"], "--job-time 3x: ")
        self.refused(["--partition", "main"], "--partition belongs to --runner slurm")
        self.refused(["--runner", "slurm", "--slurm-launch", "mpirun"], "--slurm-launch mpirun")
        self.refused(["--runner", "slurm", "--budget", "forty"], "--budget forty")
        self.refused(["--runner", "slurm", "--slots", "4"], "leave out --slots")

    def test_a_pilot_outside_of_an_allocation(self):
        self.refused(["--runner", "pilot"], "SLURM_JOB_ID")

    def test_an_allocation_that_is_over(self):
        self.refused(["--runner", "pilot"], "(job 999999)", in_allocation={"SLURM_JOB_ID": "999999"})

    def test_a_machine_without_slurm(self):
        folder = self.dir / "bin"
        folder.mkdir()
        for name in ("python3", "sh"):
            (folder / name).symlink_to(shutil.which(name))
        old = self.slurm.environment
        self.slurm.environment = lambda **more: old(**{**more, "PATH": str(folder)})
        self.addCleanup(setattr, self.slurm, "environment", old)
        result = self.run_slurm("run", [*SMALL, "--runner", "slurm"])
        self.assertEqual(result.returncode, 2)
        self.assertIn("PATH has no sbatch", result.stderr)


class NotShared(SlurmTest):
    """The nodes have something else where the study is to work."""

    @classmethod
    def setUpClass(cls):
        cls.private = tempfile.mkdtemp(prefix="not-shared-")
        cls.addClassCleanup(shutil.rmtree, cls.private, ignore_errors=True)
        super().setUpClass()

    def setUp(self):
        super().setUp()
        shutil.copy(self.dir / "ds_config.json", self.private)
        self.dir = pathlib.Path(self.private)

    def test_an_allocation_is_asked_before_the_first_trial(self):
        result = self.run_slurm("run", [*SMALL, "--slots-per-trial", "1"], in_allocation=self.allocate("-N2"))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertIn(f"--output-dir {self.dir}/run", result.stderr)
        self.assertIn("nodes n1, n2", result.stderr)
        self.assertFalse((self.dir / "run").exists())
        self.assertEqual([file.name for file in self.dir.iterdir() if "shared" in file.name], [])

    def test_a_job_that_sees_no_run_directory_says_so(self):
        result = self.run_slurm("jobs", [*SMALL, "--slots-per-trial", "1", "--runner", "slurm"])
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("the run directory", result.stdout + result.stderr)
