"""The memory probe's hook alone, without a host: every end of a process, and scripts that do not want it."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, FIXTURES

HOOK = BUILD / "probe"
DEVICES = FIXTURES / "devices"  # a torch with devices of 1000 bytes
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
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "DSAT_PROBE_RANK", "SLURM_PROCID", "SLURM_NTASKS",
                     "SLURM_STEP_NUM_TASKS"):
            self.variables.pop(name, None)

    def run_python(self, code, *flags, status=0, output="", limit=None, **variables):
        """Its output must be the script's own."""
        def set_limit():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        result = subprocess.run([sys.executable, *flags, "-c", code], env={**self.variables, **variables},
                                cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                                preexec_fn=set_limit)
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
        report.pop("driver")  # the machine's
        self.assertEqual(report, {"schema": 1, "rank": 1, "world_size": 2, "torch": "2.4.0+stand.in", "deepspeed": None,
                                  "device": {"type": "cuda", "total_bytes": 1000, "max_allocated_bytes": 300,
                                             "max_reserved_bytes": 324, "allocator_retries": 0, "ooms": 0},
                                  "process": None, "batches": None})

    def test_a_plain_process_without_a_rank(self):
        self.run_python(USE)
        self.assertIsNone(self.only()["rank"])

    def test_a_slurm_step_of_several_tasks_names_ranks_and_an_allocation_does_not(self):
        self.run_python(USE, SLURM_PROCID="3", SLURM_NTASKS="8")
        self.assertEqual((self.only()["rank"], self.only()["world_size"]), (None, None))
        shutil.rmtree(self.files)
        self.files.mkdir()
        self.run_python(USE, SLURM_PROCID="3", SLURM_NTASKS="8", SLURM_STEP_NUM_TASKS="4")
        self.assertEqual((self.only()["rank"], self.only()["world_size"]), (3, 4))

    def test_the_version_of_deepspeed(self):
        self.run_python(USE + "import sys, types; m = sys.modules['deepspeed'] = types.ModuleType('deepspeed');"
                              "m.__version__ = '0.14.5\\n\"\\u00e9'")
        self.assertEqual(self.only()["deepspeed"], "0.14.5?")

    def test_every_end_that_python_sees(self):
        ends = {"": (0, ""), "exit()": (0, ""), "import sys; sys.exit(3)": (3, ""),
                "raise SystemExit('bye')": (1, "bye\n"), "1 / 0": (1, None),
                "import os, signal; os.kill(os.getpid(), signal.SIGINT)": (-2, None),
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
        code = "import os, sys; print('DSAT_PROBE_RANK' in os.environ, any('Watch' in repr(f) for f in sys.meta_path))"
        self.assertEqual(self.outputs(code, variables), ("False False\n", ""))

    def test_on_other_hosts_the_trial_is_known_by_the_hooks_place(self):
        folder = self.dir / "trials/3/probe"
        folder.mkdir(parents=True)
        shutil.copy(HOOK / "sitecustomize.py", folder)
        for name in ("trials/3/ds_config.json", "experiment.json"):
            (self.dir / name).write_text("{}")
        variables = {**self.variables, "PYTHONPATH": "%s:%s" % (folder, DEVICES), "RANK": "1"}
        del variables["DSAT_TRIAL_DIR"]
        show = ("import os; print(sorted(item for item in os.environ.items() if item[0] in ('DSAT_TRIAL_ID',"
                "'DSAT_TRIAL_DIR', 'DSAT_DS_CONFIG', 'DSAT_HPARAMS', 'DSAT_EXPERIMENT')))")
        trial = str(folder.parent)
        expected = [("DSAT_DS_CONFIG", trial + "/ds_config.json"), ("DSAT_EXPERIMENT", "%s/experiment.json" % self.dir),
                    ("DSAT_TRIAL_DIR", trial), ("DSAT_TRIAL_ID", "3")]
        self.assertEqual(self.outputs(USE + show, variables), ("%s\n" % expected, ""))
        self.assertEqual(json.loads((folder / "rank1.json").read_text())["device"]["max_allocated_bytes"], 300)

    @staticmethod
    def outputs(code, variables, python=sys.executable):
        result = subprocess.run([python, "-c", code], env=variables, capture_output=True, text=True, timeout=60)
        return result.stdout, result.stderr

    def test_a_process_without_torch_leaves_nothing(self):
        self.run_python("import json, subprocess", RANK="0", LOCAL_RANK="0")
        self.assertEqual(self.left(), {})

    def test_the_scripts_own_imports_are_as_without_it(self):
        code = ("import sys; print(any('probe' in path for path in sys.path), 'sitecustomize' in sys.modules,"
                "'json' in sys.modules)")
        without = {**self.variables, "PYTHONPATH": str(DEVICES)}
        self.assertEqual(self.outputs(code, self.variables), self.outputs(code, without))

    def test_the_next_sitecustomize_runs(self):
        own = self.dir / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("print('mine')\n")
        path = "%s:%s:%s" % (HOOK, own, DEVICES)
        self.run_python(USE + "import sitecustomize; print(sitecustomize.__file__)", PYTHONPATH=path,
                        output="mine\n%s/sitecustomize.py\n" % own)
        self.assertEqual(self.only()["device"]["max_allocated_bytes"], 300)
        self.assert_as_without_it(own, "raise RuntimeError('my own fault')\n")
        self.assert_as_without_it(own, "import no_such_module\n")
        self.assert_as_without_it(own, "def\n")

    def assert_as_without_it(self, own, text):
        (own / "sitecustomize.py").write_text(text)
        (own / "usercustomize.py").write_text("print('the user')\n")
        with_it, without = ({**self.variables, "PYTHONPATH": path} for path in ("%s:%s" % (HOOK, own), str(own)))
        self.assertEqual(self.outputs("print(1)", with_it), self.outputs("print(1)", without))

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
                show = "print(torch.cuda.memory_stats()['allocated_bytes.all.peak'], " \
                       "torch.cuda.reset_peak_memory_stats.__doc__)"
                self.run_python("import torch; torch.cuda.allocate(700); torch.cuda.free(600);" + reset +
                                "; torch.cuda.allocate(50);" + show, output="150 Forgets the peak.\n", RANK="0")
                device = self.left()["rank0.json"]["device"]
                self.assertEqual((device["max_allocated_bytes"], device["max_reserved_bytes"]), (700, 724))

    def test_the_samples_that_batches_held(self):
        self.run_python("import torch\nfrom torch.utils.data import DataLoader\n"
                        "for epoch in range(3):\n"
                        "    for batch in DataLoader(range(200), batch_size=256): pass\n"
                        "for batch in DataLoader(range(200), batch_size=64): pass\n"
                        "for batch in DataLoader(range(100), batch_size=64): pass\n"
                        "for sample in DataLoader(range(5), batch_size=None): pass\n"  # no batches
                        "for batch in DataLoader(range(5), batch_sampler=[[0, 1], [2, 3]]): pass\n"  # of no stated size
                        "next(iter(DataLoader(range(9), batch_size=3)))\n"
                        "try:\n    next(iter(DataLoader(range(9), batch_size=10, drop_last=True)))\n"
                        "except StopIteration:\n    print(torch.utils.data.dataloader._BaseDataLoaderIter"
                        "._next_index.__doc__)", output="The samples of the next batch.\n", RANK="0")
        self.assertEqual(self.only()["batches"], {
            "256": {"samples": 200, "count": 3}, "64": {"samples": 64, "count": 6}, "3": {"samples": 3, "count": 1}})

    ENGINE = ("import torch; from deepspeed.runtime.engine import DeepSpeedEngine\n"
              "class Tensor:\n    def __init__(self, *shape): self.shape = shape\n"
              "class Model: training = True\n"
              "engine = DeepSpeedEngine(Model(), {'train_micro_batch_size_per_gpu': 4,\n"
              "    'gradient_accumulation_steps': 2, 'zero_optimization': {'stage': 3}})\n")

    def engines_of(self, code):
        (self.files / "rank0.json").unlink(missing_ok=True)
        self.run_python(self.ENGINE + code, RANK="0", WORLD_SIZE="2",
                        PYTHONPATH="%s:%s:%s" % (HOOK, DEVICES, FIXTURES / "engine"))
        return self.only().get("engines")

    def test_what_an_engine_ran_with(self):
        engines = self.engines_of("for _ in range(3):\n    engine(Tensor(4, 128), labels=Tensor(4))\n    engine.step()")
        self.assertEqual(engines, {"0": {"micro_batch": 4, "accumulation": 2, "train_batch": 16, "stage": 3, "steps": 3,
                                         "inputs": "4x128.4"}})

    def test_the_shapes_that_an_engine_was_fed(self):
        for calls, inputs in (
                ("engine(Tensor(2, 9)); engine(Tensor(2, 9)); engine.step()", "4x9"),  # a step in two parts
                ("engine(Tensor(4, 8)); engine.step(); engine(Tensor(4, 9)); engine.step()", "4x_"),
                # A pipeline's engine counts no micro steps.
                ("engine.pipeline_parallelism = True; [engine(Tensor(4, 8)) for _ in range(6)]", "4x8"),
                ("[(engine(Tensor(n, 8)), engine.step()) for n in (4, 4, 1)]", "4x8"),  # the last batch of the data
                ("engine(Tensor(4), {'ids': Tensor(4, 8), 'more': [Tensor(4)]}, None, 7, Tensor()); engine.step()",
                 "4.4x8.4"),
                ("engine(*[Tensor(n) for n in range(1, 10)]); engine.step()", "1.2.3.4"),
                ("engine(Tensor(1, 2, 3, 4, 5, 6)); engine.step()", "1x2x3x4")):
            with self.subTest(calls):
                self.assertEqual(self.engines_of(calls)["0"]["inputs"], inputs)

    def test_only_what_trains_is_looked_at(self):
        self.assertIsNone(self.engines_of("Model.training = False; engine(Tensor(4, 8))"))
        self.assertIsNone(self.engines_of("pass"))

    def test_no_engine_breaks_by_being_watched(self):
        engines = self.engines_of(
            "class Odd:\n    @property\n    def shape(self): raise ValueError\n"
            "engine(Tensor(4), labels=Odd()); engine.step()\n"
            "assert DeepSpeedEngine.forward.__doc__ == 'Runs the module.', DeepSpeedEngine.forward.__doc__\n"
            "assert engine(Tensor(4)) is None\n"
            "del engine.module; del DeepSpeedEngine.train_batch_size\n"
            "engine(Tensor(4))")
        self.assertEqual(engines["0"]["inputs"], "4")

    def test_more_engines_than_the_file_holds(self):
        engines = self.engines_of("engines = [DeepSpeedEngine(Model(), {'train_micro_batch_size_per_gpu': n})\n"
                                  "           for n in range(1, 9)]\nfor e in engines: e(Tensor(1))")
        self.assertEqual([engine["micro_batch"] for engine in engines.values()], [1, 2, 3, 4])

    def test_a_batch_of_everything_costs_no_peak(self):
        self.run_python(USE + "import sys; from torch.utils.data import DataLoader\n"
                        "next(iter(DataLoader(range(9), batch_size=sys.maxsize)))", RANK="0")
        self.assertIsNone(self.only()["batches"])  # the host would leave out a file with such a number
        self.assertEqual(self.only()["device"]["max_allocated_bytes"], 300)

    def test_a_script_of_many_batch_sizes_leaves_a_small_file(self):
        self.run_python("import torch\nfor size in range(1, 1000):\n"
                        "    next(iter(torch.utils.data.DataLoader(range(1000), batch_size=size)))\n"
                        "for batch in torch.utils.data.DataLoader(range(1000), batch_size=500): pass", RANK="0")
        self.assertEqual(len(self.only()["batches"]), 8)
        self.assertEqual(self.only()["batches"]["500"], {"samples": 500, "count": 3})

    def test_another_device_than_the_first(self):
        self.run_python("import torch; torch.cuda.allocate(40, device=1)")
        self.assertEqual(self.only()["device"]["max_allocated_bytes"], 40)

    def test_retries_and_shortages(self):
        self.run_python(USE + "torch.cuda.allocate(900)", status=1, output=None)
        device = self.only()["device"]
        self.assertEqual((device["allocator_retries"], device["ooms"], device["max_allocated_bytes"]), (1, 1, 300))

    def test_helpers_of_a_rank_do_not_write_its_file(self):
        helper = "subprocess.run([sys.executable, '-c', 'import torch; torch.cuda.allocate(5)'], check=True)"
        self.run_python("import os, subprocess, sys;" + USE + helper + "; os._exit(0)", RANK="0", LOCAL_RANK="0")
        self.assertEqual(self.left(), {})
        self.run_python("import os, subprocess, sys;" + helper + ";" + USE + helper, RANK="0", LOCAL_RANK="0")
        self.assertEqual(self.left()["rank0.json"]["device"]["max_allocated_bytes"], 300)
        self.run_python("import torch; torch.cuda.allocate(7)", RANK="0", LOCAL_RANK="0")
        self.assertEqual(self.left()["rank0.json"]["device"]["max_allocated_bytes"], 300, "the larger peak stays")

    def test_a_wrapper_in_python_is_not_the_rank(self):
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
        subprocess.run([sys.executable, "-c", code, USE], env={**self.variables, "RANK": "0", "LOCAL_RANK": "0"},
                       check=True, timeout=60)
        self.assertEqual(self.left()["rank0.json"]["device"]["max_allocated_bytes"], 300)

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
                          "def rank(r):\n    torch.distributed.init_process_group(r, 2)\n"
                          "    torch.cuda.allocate(10 + r)\n"
                          "if __name__ == '__main__':\n"
                          "    context = multiprocessing.get_context(sys.argv[1])\n"
                          "    work = [(helper, ())] if sys.argv[2] == 'helper' else [(rank, (0,)), (rank, (1,))]\n"
                          "    processes = [context.Process(target=f, args=a) for f, a in work]\n"
                          "    for p in processes: p.start()\n"
                          "    for p in processes: p.join()\n"
                          "    if sys.argv[2] == 'helper': torch.cuda.allocate(500)\n"
                          "    os._exit(0) if sys.argv[2] == 'ranks' else None\n")
        for way in ("spawn", "fork"):
            subprocess.run([sys.executable, script, way, "helper"], env={**self.variables, "RANK": "0"}, check=True,
                           timeout=60)
            self.assertEqual(self.only()["device"]["max_allocated_bytes"], 500)
        subprocess.run([sys.executable, script, "spawn", "ranks"], env=self.variables, check=True, timeout=60)
        self.assertEqual(self.left()["rank1.json"]["device"]["max_allocated_bytes"], 11)

    def test_ranks_that_end_their_process_group(self):
        script = self.dir / "script.py"
        script.write_text("import multiprocessing, os, torch\n"
                          "def rank(r):\n    torch.distributed.init_process_group(r, 2)\n"
                          "    torch.cuda.allocate(10 + r)\n    torch.distributed.destroy_process_group()\n"
                          "    print(torch.distributed.destroy_process_group.__doc__)\n"
                          "if __name__ == '__main__':\n"
                          "    context = multiprocessing.get_context('spawn')\n"
                          "    processes = [context.Process(target=rank, args=(r,)) for r in (0, 1)]\n"
                          "    for p in processes: p.start()\n"
                          "    for p in processes: p.join()\n")
        subprocess.run([sys.executable, script], env=self.variables, check=True, timeout=60)
        left = self.left()
        self.assertEqual([left["rank%d.json" % r]["device"]["max_allocated_bytes"] for r in (0, 1)], [10, 11])
        self.assertEqual(left["rank0.json"]["world_size"], 2)

    def test_another_finder_that_asks_for_the_same_spec(self):
        # As tools that wrap imports do: it delegates once, and looks again within.
        finder = ("import importlib.util, sys\n"
                  "class Finder:\n"
                  "    busy = False\n"
                  "    def find_spec(self, name, path=None, target=None):\n"
                  "        if self.busy or name != 'torch.cuda.memory':\n            return None\n"
                  "        self.busy = True\n"
                  "        spec = importlib.util.find_spec(name)\n"
                  "        self.busy = False\n        return spec\n"
                  "sys.meta_path.insert(1, Finder())\n")
        self.run_python(finder + USE + "torch.cuda.free(250); torch.cuda.reset_peak_memory_stats()", RANK="0")
        self.assertEqual(self.only()["device"]["max_allocated_bytes"], 300)

    def test_looking_for_a_module_is_not_importing_it(self):
        look = "import importlib.util, torch; importlib.util.find_spec('torch.xpu.memory'); import torch.xpu.memory;"
        allocators = self.dir / "more" / "torch"
        shutil.copytree(DEVICES / "torch", allocators)
        shutil.copytree(allocators / "cuda", allocators / "xpu")
        self.run_python(look + "torch.xpu.allocate(700); torch.xpu.free(600); torch.xpu.reset_peak_memory_stats()",
                        RANK="0", PYTHONPATH="%s:%s" % (HOOK, self.dir / "more"))
        self.assertEqual(self.left()["rank0.json"]["device"]["max_allocated_bytes"], 700)

    def test_a_raw_fork(self):
        fork = "import os, sys; torch.distributed.init_process_group(0, 1); pid = os.fork();"
        self.run_python(USE + fork + "pid or torch.cuda.allocate(100); pid and os.waitpid(pid, 0); pid and os._exit(0)",
                        RANK="0")
        self.assertEqual(self.left(), {})
        self.run_python(USE + fork + "pid and os.waitpid(pid, 0); pid or sys.exit()", RANK="0")
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
        for name in ("python2", "python3.6", "python3.8", "python3.13", "/usr/bin/python3", sys.executable):
            python = shutil.which(name)
            code = "import sys; sys.stdout.write('fine')"
            without = {**self.variables, "PYTHONPATH": str(DEVICES)}
            if name != sys.executable and (python is None or self.outputs(code, without, python)[0] != "fine"):
                continue  # not here, or a name without a program
            with self.subTest(python):
                self.assertEqual(self.outputs(code, self.variables, python), ("fine", ""))


if __name__ == "__main__":
    unittest.main()
