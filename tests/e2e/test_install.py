"""What `cmake --install` leaves behind is enough for others:
the examples are built against it, out of tree, and run."""
import json
import os
import pathlib
import re
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


@unittest.skipUnless(os.access(BUILD, os.W_OK), "cmake --install writes a list of files where it was built")
class InstallTest(HostTest):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="dsat-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.prefix = cls.root / "prefix"
        run(["cmake", "--install", BUILD, "--prefix", cls.prefix])
        cls.build_examples()

    @classmethod
    def build_examples(cls):
        """Each is a project of its own; one build has them all, so that none waits for another."""
        names = ["plugins/searcher_c", "plugins/searcher_cpp", "plugins/profiler_cpp", "embed", "embed_static"]
        if (BUILD / "dsat-trial").exists():
            names += ["trials/trial_api", "trials/bare_loop"]
        folders = "".join(f"add_subdirectory({EXAMPLES / name} {name})\n" for name in names)
        (cls.root / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(examples LANGUAGES C CXX)\n" + folders)
        ccache = shutil.which("ccache")
        launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={ccache}" for language in ("C", "CXX")] if ccache else []
        run(["cmake", "-G", "Ninja", "-S", cls.root, "-B", cls.root / "build", f"-DCMAKE_PREFIX_PATH={cls.prefix}",
             "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", *launcher])  # without -g: a third faster
        environment = {**os.environ, "CCACHE_BASEDIR": str(cls.root), "CCACHE_NOHASHDIR": "1"}
        run(["cmake", "--build", cls.root / "build"], env=environment)

    def installed(self, pattern):
        found = sorted(self.prefix.glob(pattern))
        self.assertTrue(found, f"nothing installed as {pattern}")
        return found[0]

    def example(self, name):
        """The folder that it was built in."""
        return self.root / "build" / name

    def plugin(self, name):
        return self.root / "build/plugins" / f"lib{name}.so"

    def configure(self, project):
        """What find_package says to a project of these lines."""
        folder = self.dir / "project"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n" + project)
        return subprocess.run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build",
                               f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON"],
                              capture_output=True, text=True, timeout=300)

    def tune(self, *options, below=()):
        host = self.installed("bin/dsat-host")
        arguments = [*below, host, *options, "--max-trials", "12", "--slots", "1", "-m", "throughput", "--output-dir",
                     "run", "--", *SCRIPT, "--deepspeed_config", "ds_config.json"]
        return run(arguments, cwd=self.dir)

    def test_programs_and_plugins_are_where_the_contract_says(self):
        self.installed("bin/dsat-host")
        self.installed("libexec/dsat/dsat-launch")
        self.installed("libexec/dsat/probe/sitecustomize.py")
        self.installed("libexec/dsat/probe/dsat_inject.py")
        for name in ("asha", "binary", "random", "profiler"):
            self.installed(f"lib*/**/dsat/plugins/lib{name}.so")

    def test_the_python_package_is_there_whole(self):
        self.installed("share/dsat/examples/scripts/pytorch_ddp/train.py")
        package = self.installed("share/dsat/python/dsat/py.typed").parent
        names = run([sys.executable, "-S", "-E", "-c",
                     "import sys; sys.path.insert(0, sys.argv[1]); import dsat; print(*dsat.__all__)", package.parent])
        self.assertIn("StepTimer", names)

    def test_the_host_and_the_plugins_link_no_libtorch(self):
        files = [self.installed("bin/dsat-host"), *self.prefix.glob("lib*/**/dsat/plugins/*.so")]
        for file in files:
            libraries = run(["ldd", file])
            for name in FORBIDDEN:
                self.assertNotIn(name, libraries, file)

    def test_a_read_only_installation_tunes(self):
        apart = ["unshare", "--map-root-user", "--mount"]
        if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespace of mounts can be made here")
        mount = 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; touch "$0/new" && exit 1; exec "$@"'
        self.tune("--searcher", "asha", below=[*apart, "sh", "-ec", mount, self.prefix])
        self.assertTrue((self.dir / "run/best_ds_config.json").exists())

    def test_a_plugin_exports_its_entry_and_nothing_else(self):
        plugins = [*self.prefix.glob("lib*/**/dsat/plugins/*.so"), self.plugin("ladder"), self.plugin("climb")]
        for plugin in plugins:
            names = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", plugin]).splitlines()]
            self.assertEqual(names, ["dsat_plugin_entry_v1"], plugin)

    def test_a_searcher_in_c_runs(self):
        self.tune("--searcher", self.plugin("ladder"))
        trials = self.show(self.dir / "run")["trials"]
        climbed = [t["config"]["train_micro_batch_size_per_gpu"] for t in trials if t["note"] == "the next rung"]
        self.assertEqual(climbed[:4], [1, 2, 4, 8])

    def test_a_searcher_in_cpp_passes_its_own_test_and_runs(self):
        run(["ctest", "--test-dir", self.example("plugins/searcher_cpp"), "--output-on-failure"])
        self.tune("--searcher", self.plugin("climb"), "--factor", "3")
        self.assertTrue((self.dir / "run/best_ds_config.json").exists())

    def test_a_new_plugin_passes_its_test_at_once(self):
        environment = {**os.environ, "CARGO_NET_OFFLINE": "true"}
        if not shutil.which("make"):  # cmake's own choice
            environment["CMAKE_GENERATOR"] = "Ninja"
        for language, compiler in (("c", "cc"), ("c++", "c++"), ("python", "python3"), ("rust", "cargo")):
            if not shutil.which(compiler):
                print(f"new-plugin in {language} is left out: there is no {compiler}", file=sys.stderr)
                continue
            name = "my_" + language.replace("+", "p")
            text = run([self.installed("bin/dsat-host"), "new-plugin", name, "--language", language], cwd=self.dir)
            build, _ = re.findall(r"^  (.*)$", text, re.MULTILINE)
            self.assertRegex(run(["sh", "-ec", build], cwd=self.dir, env=environment), r"100% tests passed|ok|^$")
            self.tune("--searcher", re.search(r"--searcher (\S+)", text)[1])
            shutil.rmtree(self.dir / "run")

    def test_a_new_plugin_changes_nothing_that_is_there(self):
        (self.dir / "mine").mkdir()
        result = subprocess.run([self.installed("bin/dsat-host"), "new-plugin", "mine"], cwd=self.dir,
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("mine is there already", result.stderr)
        self.assertEqual(list((self.dir / "mine").iterdir()), [])

    def test_a_profiler_in_cpp_runs(self):
        self.tune("--searcher", "asha", "--profiler", self.plugin("quick_profile"))
        self.assertEqual(self.show(self.dir / "run")["profile"]["schema"], 1)

    def test_a_trial_in_cpp_trains(self):
        if not (BUILD / "dsat-trial").exists():
            self.skipTest("built without the trainer")
        library = self.example("trials/trial_api") / "libimage_trial.so"
        output = run([self.installed("bin/dsat-trial"), "--trial", library, "--steps", "1",
                      "--experiment", "experiment.json", "--deepspeed_config", "ds_config.json",
                      "--tensorboard", self.dir], cwd=EXAMPLES / "trials/trial_api")
        self.assertIn("training 1 ", output)

    def test_a_bare_loop_trains_with_the_installed_trainer(self):
        if not (BUILD / "dsat-trial").exists():
            self.skipTest("built without the trainer")
        output = run([self.example("trials/bare_loop") / "image_loop", "experiment.json", "1", "--ranks", "2",
                      "--deepspeed_config", "ds_config.json"], cwd=EXAMPLES / "trials/bare_loop")
        self.assertIn("training 1 ", output)

    def test_only_who_asks_for_the_trainer_needs_libtorch(self):
        result = self.configure("find_package(dsat REQUIRED OPTIONAL_COMPONENTS trainer COMPONENTS sdk)\n"
                                "if(TARGET dsat::trainer OR NOT TARGET dsat::sdk)\nmessage(FATAL_ERROR wrong)\nendif()")
        self.assertEqual(result.returncode, 0, result.stderr)
        shutil.rmtree(self.dir / "project")
        result = self.configure("find_package(dsat REQUIRED COMPONENTS trainer)")
        self.assertNotEqual(result.returncode, 0)
        reason = "needs LibTorch" if (BUILD / "dsat-trial").exists() else "was built without its trainer"
        self.assertIn(reason, " ".join(result.stderr.split()))

    def test_a_program_in_c_ends_a_study_that_libdsat_runs(self):
        program = self.example("embed") / "embed_c"
        result = subprocess.run([program, "out", "3"], cwd=self.dir, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 3, result.stderr)
        *ended, last = result.stdout.splitlines()
        self.assertEqual(ended[2], "a trial has ended, 0 are left")
        self.assertEqual((json.loads(last)["status"], result.stderr), ("interrupted", ""))
        result = subprocess.run([program, "out", "3"], cwd=self.dir, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 2)
        self.assertIn("dsat-host resume", result.stderr)

    def test_a_program_in_cpp_runs_two_studies_at_once(self):
        output = run([self.example("embed") / "embed", "one", "two"], cwd=self.dir)
        for searcher in ("asha", "random"):
            result = json.loads(re.search(f"^{searcher}: ({{.*)$", output, re.MULTILINE)[1])
            self.assertEqual(result["status"], "completed")

    def test_pkg_config_is_enough_to_link_it(self):
        shutil.copy(EXAMPLES / "embed/embed.c", self.dir)
        package = self.installed("lib*/**/pkgconfig/dsat.pc").parent
        environment = {**os.environ, "PKG_CONFIG_PATH": str(package)}
        flags = run(["pkg-config", "--cflags", "--libs", "dsat"], env=environment).split()
        run(["cc", "embed.c", "-o", "embed", f'-DEXAMPLE_DIR="{EXAMPLES}/embed"', *flags,
             *os.environ.get("CFLAGS", "").split()], cwd=self.dir)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(package.parent)}
        result = subprocess.run(["./embed", "out", "1"], cwd=self.dir, capture_output=True, text=True, env=environment)
        self.assertEqual(result.returncode, 3, result.stderr)

    def test_libdsat_shows_its_interface_alone(self):
        lines = run(["nm", "-D", "--defined-only", self.installed("lib*/**/libdsat.so.1")]).splitlines()
        names = [line.split()[-1] for line in lines]
        self.assertTrue(names)
        self.assertEqual([name for name in names if not name.startswith("dsat_")], [])

    def test_an_embedding_program_runs_a_study_and_stops_it_from_another_thread(self):
        program = self.example("embed_static") / "embed_static"
        output = run([program, self.dir / "embedded", "4"], cwd=self.dir)
        self.assertIn("trial 0:", output)
        self.assertIn("best so far:", output)
        self.assertIn("interrupted:", output)

    def test_an_embedding_program_sees_a_study_end_by_itself(self):
        program = self.example("embed_static") / "embed_static"
        output = run([program, self.dir / "embedded", "100000"], cwd=self.dir)
        self.assertIn("completed:", output)

    def test_the_examples_are_as_short_as_they_claim(self):
        for file, limit in (("plugins/searcher_c/ladder.c", 80), ("plugins/searcher_cpp/climb.cc", 80),
                            ("embed/embed.c", 40), ("embed/embed.cc", 40), ("embed_static/embed.cc", 60)):
            self.assertLessEqual(len((EXAMPLES / file).read_text().splitlines()), limit, file)


if __name__ == "__main__":
    unittest.main()
