"""What `cmake --install` leaves behind is enough for others: the examples are built against it, out of tree, and run."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, SCRIPT, HostTest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
FORBIDDEN = ("libtorch", "libc10", "libgloo")


def run(arguments, **options):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=900, **options)
    if result.returncode != 0:
        raise AssertionError(f"{arguments}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
    return result.stdout


class InstallTest(HostTest):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="dsat-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.prefix = cls.root / "prefix"
        run(["cmake", "--install", BUILD, "--prefix", cls.prefix])

    def installed(self, pattern):
        found = sorted(self.prefix.glob(pattern))
        self.assertTrue(found, f"nothing installed as {pattern}")
        return found[0]

    def example(self, name):
        """Builds an example in a folder of its own; returns that folder."""
        build = self.root / name
        if not build.exists():
            run(["cmake", "-G", "Ninja", "-S", EXAMPLES / name, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                 "-DCMAKE_BUILD_TYPE=Debug"])
            run(["cmake", "--build", build])
        return build

    def tune(self, *options):
        host = self.installed("bin/dsat-host")
        arguments = [host, *options, "--max-trials", "12", "--slots", "1", "-m", "throughput", "--output-dir", "run",
                     "--", *SCRIPT, "--deepspeed_config", "ds_config.json"]
        return run(arguments, cwd=self.dir)

    def test_programs_and_plugins_are_where_the_contract_says(self):
        self.installed("bin/dsat-host")
        self.installed("libexec/dsat/dsat-launch")
        for name in ("asha", "binary", "random", "profiler"):
            self.installed(f"lib*/**/dsat/plugins/lib{name}.so")

    def test_the_python_package_is_there_whole(self):
        self.installed("share/dsat/examples/pytorch_ddp/train.py")
        package = self.installed("share/dsat/python/dsat/py.typed").parent
        names = run([sys.executable, "-S", "-E", "-c", "import sys; sys.path.insert(0, sys.argv[1]); import dsat; print(*dsat.__all__)",
                     package.parent])
        self.assertIn("StepTimer", names)

    def test_the_host_and_the_plugins_link_no_libtorch(self):
        files = [self.installed("bin/dsat-host"), *self.prefix.glob("lib*/**/dsat/plugins/*.so")]
        for file in files:
            libraries = run(["ldd", file])
            for name in FORBIDDEN:
                self.assertNotIn(name, libraries, file)

    def test_a_plugin_exports_its_entry_and_nothing_else(self):
        plugins = [*self.prefix.glob("lib*/**/dsat/plugins/*.so"), self.example("searcher-c") / "plugins/libladder.so",
                   self.example("searcher-cpp") / "plugins/libclimb.so"]
        for plugin in plugins:
            names = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", plugin]).splitlines()]
            self.assertEqual(names, ["dsat_plugin_entry_v1"], plugin)

    def test_a_searcher_in_c_runs(self):
        self.tune("--searcher", self.example("searcher-c") / "plugins/libladder.so")
        trials = self.show(self.dir / "run")["trials"]
        climbed = [t["config"]["train_micro_batch_size_per_gpu"] for t in trials if t["note"] == "the next rung"]
        self.assertEqual(climbed[:4], [1, 2, 4, 8])

    def test_a_searcher_in_cpp_passes_its_own_test_and_runs(self):
        build = self.example("searcher-cpp")
        run(["ctest", "--test-dir", build, "--output-on-failure"])
        self.tune("--searcher", build / "plugins/libclimb.so", "--factor", "3")
        self.assertTrue((self.dir / "run/best_ds_config.json").exists())

    def test_a_profiler_in_cpp_runs(self):
        profiler = self.example("profiler-cpp") / "plugins/libquick_profile.so"
        self.tune("--searcher", "asha", "--profiler", profiler)
        self.assertEqual(self.show(self.dir / "run")["profile"]["schema"], 1)

    def test_a_trial_in_cpp_trains(self):
        if not (BUILD / "dsat-trial").exists():
            self.skipTest("built without the trainer")
        library = self.example("trial_api") / "libimage_trial.so"
        output = run([self.installed("bin/dsat-trial"), "--trial", library, "--steps", "1", "--experiment", "experiment.json",
                      "--deepspeed_config", "ds_config.json", "--tensorboard", self.dir], cwd=EXAMPLES / "trial_api")
        self.assertIn("training 1 ", output)

    def test_an_embedding_program_runs_a_study_and_stops_it_from_another_thread(self):
        program = self.example("embed") / "embed"
        output = run([program, self.dir / "embedded", "4"], cwd=self.dir)
        self.assertIn("trial 0:", output)
        self.assertIn("best so far:", output)
        self.assertIn("interrupted:", output)

    def test_an_embedding_program_sees_a_study_end_by_itself(self):
        program = self.example("embed") / "embed"
        output = run([program, self.dir / "embedded", "100000"], cwd=self.dir)
        self.assertIn("completed:", output)

    def test_the_examples_are_as_short_as_they_claim(self):
        for file, limit in (("searcher-c/ladder.c", 80), ("searcher-cpp/climb.cc", 80), ("embed/embed.cc", 60)):
            self.assertLessEqual(len((EXAMPLES / file).read_text().splitlines()), limit, file)


if __name__ == "__main__":
    unittest.main()
