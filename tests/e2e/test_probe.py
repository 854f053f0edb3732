"""The memory probe's hook under every end of a process, and the peaks that a study has from it."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, FIXTURES, HOST, HostTest

HOOK = BUILD / "probe"
DEVICES = FIXTURES / "devices"  # a torch with devices of 1000 bytes
SYSTEM_PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to
TORCHRUN = pathlib.Path("/usr/bin/torchrun")
USE = "import torch; torch.cuda.allocate(300);"


class Hook(unittest.TestCase):
    """The hook alone, without a host."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-probe-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.files = self.dir / "probe"
        self.files.mkdir()
        self.variables = {**os.environ, "DSAT_TRIAL_DIR": str(self.dir), "PYTHONPATH": "%s:%s" % (HOOK, DEVICES),
                          "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "DSAT_PROBE_RANK"):
            self.variables.pop(name, None)

    def run_python(self, code, *flags, status=0, output="", limit=None, **variables):
        """Its output must be the script's own."""
        def set_limit():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        result = subprocess.run([sys.executable, *flags, "-c", code], env={**self.variables, **variables}, cwd=self.dir,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, preexec_fn=set_limit)
        self.assertEqual(result.returncode, status, result.stdout)
        if output is not None:
            self.assertEqual(result.stdout, output)

    def left(self):
        return {file.name: json.loads(file.read_text()) for file in self.files.iterdir()}

    def only(self):
        (report,) = self.left().values()
        return report

    def test_what_it_writes(self):
        self.run_python(USE, RANK="1", LOCAL_RANK="1", WORLD_SIZE="2")
        report = self.left()["rank1.json"]
        report.pop("pid")
        self.assertEqual(report, {"schema": 1, "rank": 1, "world_size": 2, "torch": "2.4.0+stand.in", "deepspeed": None,
                                  "device": {"type": "cuda", "total_bytes": 1000, "max_allocated_bytes": 300,
                                             "max_reserved_bytes": 324, "allocator_retries": 0, "ooms": 0},
                                  "process": None})

    def test_a_plain_process_without_a_rank(self):
        self.run_python(USE)
        self.assertIsNone(self.only()["rank"])

    def test_the_version_of_deepspeed(self):
        self.run_python(USE + "import sys, types; m = sys.modules['deepspeed'] = types.ModuleType('deepspeed');"
                              "m.__version__ = '0.14.5\\n\"\\u00e9'")
        self.assertEqual(self.only()["deepspeed"], "0.14.5?")

    def test_every_end_that_python_sees(self):
        ends = {"": (0, ""), "exit()": (0, ""), "import sys; sys.exit(3)": (3, ""), "raise SystemExit('bye')": (1, "bye\n"),
                "1 / 0": (1, None), "import os, signal; os.kill(os.getpid(), signal.SIGINT)": (-2, None),
                "import threading, time; threading.Thread(target=lambda: time.sleep(0.2)).start()": (0, ""),
                "import os; os.chdir('/')": (0, ""), "import os; os.closerange(0, 100)": (0, ""),
                "import os; os.environ.clear()": (0, ""), "import sys; sys.path.clear(); sys.stdout = None": (0, ""),
                "import os; os.umask(0o777)": (0, "")}
        for end, (status, output) in ends.items():
            with self.subTest(end):
                self.run_python(USE + end, status=status, output=output, RANK="0", LOCAL_RANK="0")
                self.assertEqual(self.left()["rank0.json"]["device"]["max_allocated_bytes"], 300)
                (self.files / "rank0.json").unlink()

    def test_ends_that_nobody_sees_lose_the_file_only(self):
        ends = {"import os; os._exit(4)": 4, "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": -15,
                "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": -9,
                "import os; os.execv('/bin/true', ['true'])": 0,
                "import os, shutil; shutil.rmtree(os.environ['DSAT_TRIAL_DIR'] + '/probe')": 0}
        for end, status in ends.items():
            with self.subTest(end):
                self.run_python(USE + end, status=status)
                self.assertEqual(self.left() if self.files.exists() else {}, {})

    def test_hostile_scripts_lose_the_file_only(self):
        for hostility in ("import sys; sys.modules.clear()", "import os; os.rename = os.open = None",
                          "import os; del os.write", "torch.cuda.memory_stats = None", "torch.cuda = 7",
                          "torch.cuda.is_initialized = lambda: 1 / 0", "torch.__version__ = 7",
                          "import builtins; builtins.max = builtins.open = None",
                          "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
                          "import atexit; atexit._clear()"):
            with self.subTest(hostility):
                self.run_python(USE + hostility, output="")

    def test_a_folder_that_cannot_be_written(self):
        self.files.rmdir()
        self.run_python(USE)
        self.files.write_text("a file in its place")
        self.run_python(USE)
        self.run_python(USE, DSAT_TRIAL_DIR="/nowhere/at/all")
        self.run_python(USE, DSAT_TRIAL_DIR="/proc")

    def test_flags_that_leave_it_out(self):
        for flags in (["-I"], ["-E"], ["-S"]):
            self.run_python("import sys; print('meta' if len(sys.meta_path) > 4 else '')", *flags, output=None)
        self.assertEqual(self.left(), {})
        self.run_python(USE, "-s", "-B", "-u", "-O", "-W", "error")
        self.assertEqual(len(self.left()), 1)

    def test_outside_of_a_trial_it_does_nothing(self):
        variables = dict(self.variables)
        del variables["DSAT_TRIAL_DIR"]
        code = "import atexit, os, sys; print('DSAT_PROBE_RANK' in os.environ, any('Watch' in repr(f) for f in sys.meta_path))"
        result = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=60)
        self.assertEqual((result.stdout, result.stderr), ("False False\n", ""))

    def test_a_process_without_torch_leaves_nothing(self):
        self.run_python("import json, subprocess", RANK="0", LOCAL_RANK="0")
        self.assertEqual(self.left(), {})

    def test_the_scripts_own_imports_are_as_without_it(self):
        code = "import sys; print(any('probe' in p for p in sys.path), 'sitecustomize' in sys.modules, 'json' in sys.modules)"
        with_hook = self.variables
        without = {**with_hook, "PYTHONPATH": str(DEVICES)}
        outputs = [subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=60).stdout
                   for variables in (with_hook, without)]
        self.assertEqual(*outputs)

    def test_the_next_sitecustomize_runs(self):
        own = self.dir / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("print('mine')\n")
        path = "%s:%s:%s" % (HOOK, own, DEVICES)
        self.run_python(USE + "import sitecustomize; print(sitecustomize.__file__)", output="mine\n%s/sitecustomize.py\n" % own,
                        PYTHONPATH=path)
        self.assertEqual(self.only()["device"]["max_allocated_bytes"], 300)
        self.assert_as_without_it(own, "raise RuntimeError('my own fault')\n")
        self.assert_as_without_it(own, "import no_such_module\n")
        self.assert_as_without_it(own, "def\n")

    def assert_as_without_it(self, own, text):
        (own / "sitecustomize.py").write_text(text)
        (own / "usercustomize.py").write_text("print('the user')\n")
        with_it, without = (subprocess.run([sys.executable, "-c", "print(1)"], env={**self.variables, "PYTHONPATH": path},
                                           capture_output=True, text=True, timeout=60) for path in ("%s:%s" % (HOOK, own), own))
        self.assertEqual((with_it.stdout, with_it.stderr), (without.stdout, without.stderr))

    def test_a_sitecustomize_that_calls_the_next_one_itself(self):
        own = self.dir / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text(
            "import os, sys\nprint('chained')\nhere = os.path.dirname(__file__)\nsys.path.remove(here)\n"
            "del sys.modules['sitecustomize']\ntry:\n    import sitecustomize\nexcept ImportError:\n    pass\n"
            "finally:\n    sys.path.insert(0, here)\nsys.modules['sitecustomize'] = sys\n")
        self.run_python("", output="chained\n", PYTHONPATH="%s:%s:%s" % (HOOK, own, DEVICES))

    def test_peaks_before_a_reset_are_kept(self):
        for reset in ("torch.cuda.reset_peak_memory_stats()", "torch.cuda.reset_max_memory_allocated()",
                      "torch.cuda.memory.reset_peak_memory_stats(0)"):
            with self.subTest(reset):
                self.run_python("import torch; torch.cuda.allocate(700); torch.cuda.free(600);" + reset +
                                "; torch.cuda.allocate(50); print(torch.cuda.memory_stats()['allocated_bytes.all.peak'],"
                                "torch.cuda.reset_peak_memory_stats.__doc__)", output="150 Forgets the peak.\n", RANK="0")
                device = self.left()["rank0.json"]["device"]
                self.assertEqual((device["max_allocated_bytes"], device["max_reserved_bytes"]), (700, 724))

    def test_another_device_than_the_first(self):
        self.run_python("import torch; torch.cuda.allocate(40, device=1)")
        self.assertEqual(self.only()["device"]["max_allocated_bytes"], 40)

    def test_retries_and_shortages(self):
        self.run_python(USE + "torch.cuda.allocate(900)", status=1, output=None)
        device = self.only()["device"]
        self.assertEqual((device["allocator_retries"], device["ooms"], device["max_allocated_bytes"]), (1, 1, 300))

    def test_helpers_of_a_rank_do_not_write_its_file(self):
        helper = "subprocess.run([sys.executable, '-c', 'import torch; torch.cuda.allocate(5)'], check=True)"
        self.run_python("import os, subprocess, sys;" + helper + ";" + USE + helper + "; os._exit(0)", RANK="0", LOCAL_RANK="0")
        self.assertEqual(self.left(), {})

    def test_launchers_start_ranks_and_leave_nothing(self):
        rank = "import torch; torch.cuda.allocate(10)"
        for outer in ({}, {"RANK": "0", "WORLD_SIZE": "1"}):  # a pod has a rank of its own
            with self.subTest(outer):
                launcher = ("import os, subprocess, sys, torch\nfor r in '01':\n"
                            "    subprocess.run([sys.executable, '-c', %r], check=True,\n"
                            "        env=dict(os.environ, RANK=r, LOCAL_RANK=r, WORLD_SIZE='2'))\n"
                            % (rank + "; big = bytearray(b'x') * 50000000"))
                self.run_python(launcher, **outer)
                self.assertEqual(sorted(self.left()), ["rank0.json", "rank1.json"])
                self.assertEqual(self.left()["rank0.json"]["device"]["max_allocated_bytes"], 10)

    def test_children_of_multiprocessing(self):
        script = self.dir / "script.py"
        script.write_text("import multiprocessing, os, sys, torch\n"
                          "def helper():\n    torch.cuda.allocate(1)\n"
                          "def rank(r):\n    torch.distributed.init_process_group(r, 2)\n    torch.cuda.allocate(10 + r)\n"
                          "if __name__ == '__main__':\n"
                          "    context = multiprocessing.get_context(sys.argv[1])\n"
                          "    work = [(helper, ())] if sys.argv[2] == 'helper' else [(rank, (0,)), (rank, (1,))]\n"
                          "    processes = [context.Process(target=f, args=a) for f, a in work]\n"
                          "    for p in processes: p.start()\n"
                          "    for p in processes: p.join()\n"
                          "    if sys.argv[2] == 'helper': torch.cuda.allocate(500)\n"
                          "    os._exit(0) if sys.argv[2] == 'ranks' else None\n")
        for way in ("spawn", "fork"):
            subprocess.run([sys.executable, script, way, "helper"], env={**self.variables, "RANK": "0"}, check=True, timeout=60)
            self.assertEqual(self.only()["device"]["max_allocated_bytes"], 500)
        subprocess.run([sys.executable, script, "spawn", "ranks"], env=self.variables, check=True, timeout=60)
        self.assertEqual(self.left()["rank1.json"]["device"]["max_allocated_bytes"], 11)

    def test_a_raw_fork(self):
        self.run_python(USE + "import os, sys; pid = os.fork(); pid and os.waitpid(pid, 0); pid or sys.exit()", RANK="0")
        self.assertEqual(self.only()["device"]["max_allocated_bytes"], 300)

    def test_without_a_device_the_process_against_its_limit(self):
        self.run_python("import torch; big = bytearray(b'x') * 200000000; del big", limit=1500000000)
        report = self.only()
        self.assertIsNone(report["device"])
        self.assertEqual((report["process"]["limit"], report["process"]["limit_bytes"]), ("RLIMIT_DATA", 1500000000))
        self.assertAlmostEqual(report["process"]["peak_bytes"], 210e6, delta=15e6)

    def test_at_the_limit_the_peak_is_no_more_than_it(self):
        self.run_python("import torch; big = bytearray(b'x') * 400000000", limit=300000000, status=1, output=None)
        self.assertLessEqual(self.only()["process"]["peak_bytes"], 300000000)

    def test_other_pythons(self):
        for python in filter(None, map(shutil.which, ("python2", "python3.6", "python3.8", "python3.13", SYSTEM_PYTHON))):
            with self.subTest(python):
                result = subprocess.run([python, "-c", "import sys; sys.stdout.write('fine')"], env=self.variables,
                                        capture_output=True, text=True, timeout=60)
                self.assertIn((result.returncode, result.stdout, result.stderr), [(0, "fine", "")] if result.returncode == 0
                              else [(result.returncode, result.stdout, result.stderr)])  # a name without a program


# A training script that trains nothing: its memory is a bucket and the micro batch.
TRIAL = """
import json, os, sys
import torch
with open(sys.argv[sys.argv.index("--deepspeed_config") + 1]) as file:
    config = json.load(file)
tuning, micro = config["autotuning"], config["train_micro_batch_size_per_gpu"]
torch.cuda.allocate(100)
try:
    torch.cuda.allocate(90 * micro + int(os.environ.get("RANK", "0")))
except RuntimeError as error:
    sys.exit("torch.cuda.OutOfMemoryError: " + str(error))
if "hide" in sys.argv:
    os._exit(0) if os.environ.get("RANK") == "1" else None
if os.environ.get("RANK", "0") == "0":
    if tuning.get("model_info", {}).get("profile"):
        result, path = {"num_params": 10, "trainable_num_params": 10, "activation_mem_per_gpu": 90}, tuning["model_info_path"]
    else:
        latency = 1e5 + 1e4 * micro
        size = micro * int(os.environ.get("WORLD_SIZE", "1"))
        result, path = {"latency": latency, "throughput": size * 1e6 / latency, "FLOPS_per_gpu": micro / latency}, tuning["metric_path"]
    if "told" in sys.argv:
        result["peak_memory"] = 77
    if "bad" in sys.argv:
        with open(os.environ["DSAT_TRIAL_DIR"] + "/probe/rank7.json", "w") as file:
            file.write("{")
    with open(path, "w") as file:
        json.dump(result, file)
exit()
"""

# Stands for torchrun: as many ranks as it is asked for, each a Python of its own.
LAUNCHER = """#!%s -SE
import os, subprocess, sys
arguments, count = sys.argv[1:], 1
while arguments[0].startswith("-"):
    flag, value = arguments.pop(0), arguments.pop(0)
    if flag == "--nproc_per_node":
        count = int(value)
ranks = [subprocess.Popen([sys.executable] + arguments, env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(count)))
         for r in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
""" % sys.executable


class Studies(HostTest):
    """What the host makes of the files."""

    def setUp(self):
        super().setUp()
        (self.dir / "train.py").write_text(TRIAL)
        (self.dir / "torchrun").write_text(LAUNCHER)
        (self.dir / "torchrun").chmod(0o755)

    def tune(self, *command, options=(), trials=6, micro=4):
        arguments = [HOST, "--output-dir", "out", "--searcher", "random", "--max-trials", trials, "-z", 1,
                     "--max-micro-batch", micro, *options, "--", *command, "--deepspeed_config", "ds_config.json"]
        environment = {**os.environ, "PYTHONPATH": str(DEVICES), "STAND_IN_SITE": "1",
                       "PATH": "%s:%s/bin:%s" % (self.dir, FIXTURES, os.environ["PATH"])}
        result = subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True, timeout=240, env=environment)
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

    def test_other_hosts_have_the_hook_in_the_run_directory(self):
        (self.dir / "hostfile").write_text("w1 slots=1\nw2 slots=1\n")
        for tool in ("ssh", "pdsh"):
            (self.dir / tool).write_text("#!/bin/sh\nexit 0\n")
            (self.dir / tool).chmod(0o755)
        _, trials = self.tune("deepspeed", "--hostfile", "hostfile", "train.py")
        self.assertTrue((self.dir / "out/probe/sitecustomize.py").exists())
        for trial in trials:
            self.assertEqual(self.files(trial), ["rank0.json", "rank1.json"])

    def test_the_result_file_goes_first(self):
        _, trials = self.tune(sys.executable, "train.py", "told")
        self.assertEqual({(trial["peak_bytes"], trial["peak_source"]) for trial in trials}, {(77, "metrics")})

    def test_no_probe(self):
        _, trials = self.tune(sys.executable, "train.py", options=["--no-probe"], trials=5)
        self.assertEqual({(trial["peak_bytes"], trial["peak_source"]) for trial in trials}, {(None, None)})
        self.assertFalse((self.dir / "out/trials/0/probe").exists())
        environment = {**os.environ, "PYTHONPATH": str(DEVICES)}
        result = subprocess.run([HOST, "resume", "out", "--max-trials", "6"], cwd=self.dir, capture_output=True, text=True,
                                timeout=240, env=environment)
        self.assert_ok(result)
        self.assertEqual({trial["peak_bytes"] for trial in self.show("out")["trials"]}, {None})

    def test_a_rank_without_a_file_and_a_bad_file_are_one_line_each(self):
        result, trials = self.tune("torchrun", "--nproc_per_node", 2, "train.py", "hide", "bad",
                                   options=["--slots", 2])
        lines = result.stdout + result.stderr
        self.assertIn("trial 1: memory probe: 1 of 2 ranks left a file", lines)
        self.assertIn("trial 1: memory probe: left out rank7.json", lines)
        self.assertTrue(all(trial["peak_bytes"] for trial in trials))

    def test_a_script_that_removes_its_folder_has_no_peak(self):
        script = (self.dir / "train.py").read_text().replace("\nexit()", "\nimport shutil\n"
                                                              "shutil.rmtree(os.environ['DSAT_TRIAL_DIR'] + '/probe')\nexit()")
        (self.dir / "train.py").write_text(script)
        _, trials = self.tune(sys.executable, "train.py")
        self.assertEqual({trial["outcome"] for trial in trials}, {"completed"})
        self.assertEqual({trial["peak_bytes"] for trial in trials}, {None})


# The same with the real torch on processors: each rank holds a tensor of its micro batch.
REAL_TRIAL = TRIAL.replace("torch.cuda.allocate(100)", "import torch.distributed as dist; dist.init_process_group('gloo')")
REAL_TRIAL = REAL_TRIAL.replace('torch.cuda.allocate(90 * micro + int(os.environ.get("RANK", "0")))',
                                "held = torch.ones(10_000_000 * micro)")


@unittest.skipUnless(TORCHRUN.exists(), "python3-torch is not installed")
class RealTorchrun(HostTest):
    def test_ranks_below_torchrun(self):
        (self.dir / "train.py").write_text(REAL_TRIAL)
        # --redirects, --tee: Python 3.11 reads the flags of torch 1.13 in another way.
        command = [SYSTEM_PYTHON, TORCHRUN, "--nproc_per_node", 2, "--nnodes", 1, "--node_rank", 0, "--rdzv_backend", "static",
                   "--redirects", 1, "--tee", 1, "train.py", "--deepspeed_config", "ds_config.json"]
        arguments = [HOST, "--output-dir", "out", "--searcher", "random", "--max-trials", 3, "--profile-trials", 1, "-z", 1,
                     "--slots", 2, "--max-micro-batch", 4, "--", *command]

        def set_limit():
            resource.setrlimit(resource.RLIMIT_DATA, (2_000_000_000, 2_000_000_000))

        result = subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True, timeout=500,
                                preexec_fn=set_limit, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
        self.assert_ok(result)
        measured = {}
        for trial in self.show("out")["trials"]:
            folder = self.dir / "out/trials" / str(trial["id"]) / "probe"
            self.assertEqual(sorted(file.name for file in folder.iterdir()), ["rank0.json", "rank1.json"])
            self.assertEqual(trial["peak_source"], "probe")
            measured[trial["config"]["train_micro_batch_size_per_gpu"]] = trial["peak_bytes"]
        least, most = min(measured), max(measured)
        self.assertGreater(most, least)
        self.assertAlmostEqual((measured[most] - measured[least]) / (most - least), 40e6, delta=4e6)


if __name__ == "__main__":
    unittest.main()
