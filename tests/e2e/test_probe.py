"""What a study makes of the memory probe's files: below launchers, with the real torchrun, when files are missing."""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import unittest

from support import FIXTURES, HOST, HostTest

DEVICES = FIXTURES / "devices"  # a torch with devices of 1000 bytes, and a script
SYSTEM_PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to
TORCHRUN = pathlib.Path("/usr/bin/torchrun")

# Stands for torchrun: as many ranks as it is asked for, each a Python of its own.
LAUNCHER = """#!%s -SE
import os, subprocess, sys
arguments, count = sys.argv[1:], 1
while arguments[0].startswith("-"):
    flag, value = arguments.pop(0), arguments.pop(0)
    if flag == "--nproc_per_node":
        count = int(value)
variables = [dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(count)) for r in range(count)]
ranks = [subprocess.Popen([sys.executable] + arguments, env=v) for v in variables]
sys.exit(max(rank.wait() for rank in ranks))
""" % sys.executable


class Studies(HostTest):
    """What the host makes of the files."""

    def setUp(self):
        super().setUp()
        shutil.copy(DEVICES / "train.py", self.dir)
        (self.dir / "torchrun").write_text(LAUNCHER)
        (self.dir / "torchrun").chmod(0o755)

    def tune(self, *command, options=(), trials=6, micro=4):
        arguments = [HOST, "--output-dir", "out", "--searcher", "random", "--max-trials", trials, "-z", 1,
                     "--max-micro-batch", micro, *options, "--", *command, "--deepspeed_config", "ds_config.json"]
        environment = {**os.environ, "PYTHONPATH": str(DEVICES), "STAND_IN_SITE": "1",
                       "PATH": "%s:%s/bin:%s" % (self.dir, FIXTURES, os.environ["PATH"])}
        result = subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True, timeout=240,
                                env=environment)
        self.assert_ok(result)
        return result, [trial for trial in self.show("out")["trials"] if trial["attempt"] > 0]

    def files(self, trial):
        return sorted(file.name for file in (self.dir / "out/trials" / str(trial["id"]) / "probe").iterdir())

    def test_a_plain_script_has_its_peaks_from_the_probe(self):
        # More than fits, and a search that does not ask the device: it meets the ceiling.
        _, trials = self.tune(sys.executable, "train.py", micro=12)
        outcomes = {trial["outcome"] for trial in trials}
        self.assertLessEqual(outcomes, {"completed", "out_of_memory"})
        for trial in trials:
            self.assertEqual(len(self.files(trial)), 1)
            if trial["outcome"] == "completed":
                self.assertEqual(trial["peak_bytes"], 100 + 90 * trial["config"]["train_micro_batch_size_per_gpu"])
                self.assertEqual(trial["peak_source"], "probe")
            else:
                self.assertIsNone(trial["peak_bytes"])
                self.assertIsNone(trial["peak_source"])
        profile = self.show("out")["profile"]
        self.assertEqual(profile["device_memory_bytes"], 1000)

    def test_the_worst_of_all_ranks_below_a_launcher(self):
        _, trials = self.tune("torchrun", "--nproc_per_node", 2, "train.py", options=["--slots", 2])
        for trial in trials:
            self.assertEqual(self.files(trial), ["rank0.json", "rank1.json"])
            self.assertEqual(trial["peak_bytes"], 101 + 90 * trial["config"]["train_micro_batch_size_per_gpu"])

    def test_ranks_below_deepspeed(self):
        _, trials = self.tune("deepspeed", "--num_gpus", 2, "train.py", options=["--slots", 2])
        for trial in trials:
            self.assertEqual(self.files(trial), ["rank0.json", "rank1.json"])
            self.assertEqual(trial["peak_bytes"], 101 + 90 * trial["config"]["train_micro_batch_size_per_gpu"])

    def test_other_hosts_have_the_hook_in_the_trials_folder(self):
        (self.dir / "hostfile").write_text("w1 slots=1\nw2 slots=1\n")
        for tool in ("ssh", "pdsh"):
            (self.dir / tool).write_text("#!/bin/sh\nexit 0\n")
            (self.dir / tool).chmod(0o755)
        _, trials = self.tune("deepspeed", "--hostfile", "hostfile", "train.py")
        for trial in trials:
            files = [name for name in self.files(trial) if name != "__pycache__"]  # Python may keep the hook compiled
            self.assertEqual(files, ["dsat_engine_probe.py", "dsat_pipeline.py", "dsat_step_probe.py",
                                     "rank0.json", "rank1.json", "sitecustomize.py"])

    def test_the_larger_of_the_result_files_peak_and_the_devices_counts(self):
        _, trials = self.tune(sys.executable, "train.py", "reports")  # 300 bytes, the probe sees 190 with one sample
        for trial in trials:
            seen = 100 + 90 * trial["config"]["train_micro_batch_size_per_gpu"]
            self.assertEqual((trial["peak_bytes"], trial["peak_source"]),
                             (seen, "probe") if seen > 300 else (300, "metrics"))
        self.assertEqual({trial["peak_source"] for trial in trials}, {"metrics", "probe"})

    def test_a_data_set_smaller_than_a_batch_is_a_ceiling(self):
        _, trials = self.tune(sys.executable, "train.py", "loads", micro=8, trials=10)
        for trial in trials:
            if trial["config"]["train_micro_batch_size_per_gpu"] > 5:
                self.assertIn("fullest batch held 5", trial["reason"])
            else:
                self.assertEqual(trial["outcome"], "completed")
        outcomes = [trial["outcome"] for trial in trials]
        self.assertIn("completed", outcomes)
        self.assertIn("failed", outcomes)
        self.assertLessEqual(self.show("out")["study"]["best"]["config"]["train_micro_batch_size_per_gpu"], 5)
        self.assertEqual({trial["attempt"] for trial in trials}, {1}, "the same end again is no accident")

    def test_no_probe(self):
        _, trials = self.tune(sys.executable, "train.py", options=["--no-probe"], trials=5)
        self.assertEqual({(trial["peak_bytes"], trial["peak_source"]) for trial in trials}, {(None, None)})
        self.assertFalse((self.dir / "out/trials/0/probe").exists())
        environment = {**os.environ, "PYTHONPATH": str(DEVICES)}
        result = subprocess.run([HOST, "resume", "out", "--max-trials", "6"], cwd=self.dir, capture_output=True,
                                text=True, timeout=240, env=environment)
        self.assert_ok(result)
        self.assertEqual({trial["peak_bytes"] for trial in self.show("out")["trials"]}, {None})

    def test_a_rank_without_a_file_and_a_bad_file_are_one_line_each(self):
        result, trials = self.tune("torchrun", "--nproc_per_node", 2, "train.py", "hide", "bad",
                                   options=["--slots", 2])
        lines = result.stdout + result.stderr
        self.assertIn("trial 1: memory probe: only 1 of 2 ranks", lines)
        self.assertIn("left out rank7.json", lines)
        self.assertTrue(all(trial["peak_bytes"] for trial in trials))

    def test_a_script_that_removes_its_folder_has_no_peak(self):
        _, trials = self.tune(sys.executable, "train.py", "remove")
        self.assertEqual({trial["outcome"] for trial in trials}, {"completed"})
        self.assertEqual({trial["peak_bytes"] for trial in trials}, {None})


@unittest.skipUnless(TORCHRUN.exists(), "python3-torch is not installed")
@unittest.skipIf("DSAT_SANITIZE" in os.environ, "a sanitizer's own memory is beyond the limit")
class RealTorchrun(HostTest):
    def test_ranks_below_torchrun(self):
        shutil.copy(DEVICES / "train.py", self.dir)
        # --redirects, --tee: Python 3.11 reads the flags of torch 1.13 in another way.
        script = ["--redirects", 1, "--tee", 1, "train.py", "--gloo", "--deepspeed_config", "ds_config.json"]
        result = self.tune([SYSTEM_PYTHON, TORCHRUN, "--nproc_per_node", 2, "--nnodes", 1, "--node_rank", 0,
                            "--rdzv_backend", "static", *script])
        if "this torch has no libuv" in result.stderr:
            # As Debian 13's. What the line says is done.
            self.assertIn("--rdzv-backend c10d --rdzv-conf store_type=file", result.stderr)
            shutil.rmtree(self.dir / "out")
            result = self.tune(["env", "USE_LIBUV=0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1", SYSTEM_PYTHON, TORCHRUN,
                                "--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file", "--nproc_per_node", 2,
                                *script])
        self.assert_ok(result)
        self.check_peaks()

    def tune(self, command):
        options = ["--output-dir", "out", "--searcher", "random", "--max-trials", 3, "--profile-trials", 1, "-z", 1,
                   "--slots", 2, "--max-micro-batch", 4]

        def set_limit():
            resource.setrlimit(resource.RLIMIT_DATA, (2_000_000_000, 2_000_000_000))

        return subprocess.run(list(map(str, [HOST, *options, "--", *command])), cwd=self.dir, capture_output=True,
                              text=True, timeout=500, preexec_fn=set_limit,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                                   "MALLOC_ARENA_MAX": "1"})  # another arena is 64 MB of data

    def check_peaks(self):
        measured = {}
        for trial in self.show("out")["trials"]:
            folder = self.dir / "out/trials" / str(trial["id"]) / "probe"
            self.assertEqual(sorted(file.name for file in folder.iterdir()), ["rank0.json", "rank1.json"])
            self.assertEqual(trial["peak_source"], "process")
            measured[trial["config"]["train_micro_batch_size_per_gpu"]] = trial["peak_bytes"]
        least, most = min(measured), max(measured)
        self.assertGreater(most, least)
        # Memory that malloc had kept from the imports serves the first samples: 10 MB, the same in every run.
        kept, growth = 16e6, measured[most] - measured[least]
        self.assertGreater(growth, 40e6 * (most - least) - kept)
        self.assertLess(growth, 40e6 * (most - least) + 4e6)


if __name__ == "__main__":
    unittest.main()
