"""The part of the hook that injects a configuration, without a host: what scripts see of it, and that none breaks."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, FIXTURES

OWN = "{'train_batch_size': 8, 'zero_optimization': {'stage': 1, 'offload_param': {'device': 'none'}}, 'bf16': {}}"
TRIAL = {"train_batch_size": 32, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}, "fp16": {"a": 1}}
MERGED = {"train_batch_size": 32, "zero_optimization": {"stage": 3, "offload_param": {"device": "none"}}, "bf16": {},
          "fp16": {"a": 1}}
NOT = "dsat: the configuration was not injected: "


class InjectHook(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-inject-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "trial.json").write_text(json.dumps(TRIAL))
        self.variables = {**os.environ, "DSAT_INJECT": str(self.dir / "trial.json"), "PYTHONDONTWRITEBYTECODE": "1",
                          "PYTHONPATH": "%s:%s" % (BUILD / "probe", FIXTURES / "injection")}
        for name in ("DSAT_TRIAL_DIR", "RANK", "LOCAL_RANK", "WORLD_SIZE"):
            self.variables.pop(name, None)

    def run_python(self, code, status=0, **variables):
        """(standard output, standard error)"""
        result = subprocess.run([sys.executable, "-c", code], env={**self.variables, **variables}, cwd=self.dir,
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout, result.stderr

    def configuration(self, call, before="import deepspeed", after=""):
        """What the engine of this call gets, and what the hook says."""
        code = "import json\n%s\nown = %s\nengine = %s[0]\n%s\nprint(json.dumps(engine.config))" % (
            before, OWN, call, after)
        output, printed = self.run_python(code)
        return json.loads(output.splitlines()[-1]), printed

    def test_the_trials_configuration_goes_over_the_scripts_in_every_way_to_give_it(self):
        (self.dir / "own.json").write_text(json.dumps(eval(OWN)))
        for call, before in (
                ("deepspeed.initialize(model=1, optimizer=2, config=own)", "import deepspeed"),
                ("deepspeed.initialize(None, 1, None, [3], config_params=own)", "import deepspeed"),
                ("deepspeed.initialize(model=1, model_parameters=[3], config='own.json')", "import deepspeed"),
                ("initialize(model=1, optimizer=2, config=own)", "from deepspeed import initialize"),
                ("deepspeed.initialize(args, 1, 2)", "import argparse, deepspeed\n"
                 "args = argparse.Namespace(deepspeed_config='own.json', local_rank=0)")):
            with self.subTest(call):
                config, printed = self.configuration(call, before)
                self.assertEqual(config, MERGED)
                self.assertEqual(printed, "dsat: deepspeed.initialize gets dsat's configuration over the script's "
                                       "own: train_batch_size 32, zero_optimization.stage 3, fp16.a 1\n")

    def test_what_the_script_gave_stays_as_it_is(self):
        config, _ = self.configuration("deepspeed.initialize(model=1, optimizer=2, config=own)",
                                       after="assert own['train_batch_size'] == 8 and len(own) == 3, own")
        self.assertEqual(config, MERGED)
        (self.dir / "own.json").write_text(OWN.replace("'", '"'))
        self.configuration("deepspeed.initialize(args, 1, 2)",
                           "import argparse, deepspeed\nargs = argparse.Namespace(deepspeed_config='own.json')",
                           "assert args.deepspeed_config == 'own.json'")

    def test_an_engine_that_does_not_train_is_left_alone(self):
        config, printed = self.configuration("deepspeed.initialize(model=1, config=own)")
        self.assertEqual((config, printed), (eval(OWN), ""))

    def test_two_engines(self):
        both = "import deepspeed\nfirst = deepspeed.initialize(model=1, optimizer=2, config=%s)[0]\n" % OWN
        for own, expected, says in ((OWN, MERGED, 1), ("{'train_batch_size': 5}", {"train_batch_size": 5}, 2)):
            with self.subTest(own):
                output, printed = self.run_python(
                    both + "import json\nsecond = deepspeed.initialize(model=1, optimizer=2, config=%s)[0]\n"
                    "print(json.dumps([first.config, second.config]))" % own)
                self.assertEqual(json.loads(output), [MERGED, expected])
                self.assertEqual(len(printed.splitlines()), says, printed)

    def test_a_package_that_replaces_initialize_itself(self):
        """Before the script calls it: by a wrapper with names, with none, and by another function."""
        head = "import deepspeed, functools, json\noriginal = deepspeed.initialize\n"
        wrappers = ("def patched(model, config, optimizer=None):\n"
                    "    return original(model=model, config=dict(config, patched=True), optimizer=optimizer)\n",
                    "def patched(*arguments, **named):\n    named['config']['patched'] = True\n"
                    "    return original(*arguments, **named)\n")
        for wrapper in wrappers:
            config, _ = self.configuration("deepspeed.initialize(model=1, config=own, optimizer=2)",
                                           head + wrapper + "deepspeed.initialize = patched")
            self.assertEqual(config, dict(MERGED, patched=True))
        config, _ = self.configuration(
            "deepspeed.initialize(1, own)", head + "class Other:\n    config = {}\n"
            "deepspeed.initialize = lambda model, config: (Other,)\n")
        self.assertEqual(config, {})

    def test_any_doubt_leaves_the_configuration_alone_and_says_why(self):
        for call, before, why in (
                ("deepspeed.initialize(model=1, optimizer=2, config=own)",
                 "import deepspeed, os; os.remove('trial.json')", "FileNotFoundError: "),
                ("deepspeed.initialize(model=1, optimizer=2, config=own)",
                 "import deepspeed; open('trial.json', 'w').write('{')", "JSONDecodeError: "),
                ("deepspeed.initialize(model=1, optimizer=2, config=own)",
                 "import deepspeed, json; json.load = None", "TypeError: ")):
            with self.subTest(why):
                (self.dir / "trial.json").write_text(json.dumps(TRIAL))
                config, printed = self.configuration(call, before)
                self.assertEqual(config, eval(OWN))
                self.assertIn(NOT + why, printed)
                self.assertEqual(len(printed.splitlines()), 1, printed)

    def test_the_scripts_own_mistakes_are_reported_as_without_the_hook(self):
        for code, error in (("deepspeed.initialize(config={})", "AssertionError: deepspeed.initialize requires"),
                            ("deepspeed.initialize(model=1, optimizer=2)", "AssertionError: DeepSpeed requires"),
                            ("deepspeed.initialize(model=1, colour=2)", "TypeError: "),
                            ("deepspeed.initialize(model=1, optimizer=2, config='nowhere.json')", "FileNotFoundError")):
            with self.subTest(code):
                _, printed = self.run_python("import deepspeed; " + code, status=1)
                self.assertIn(error, printed.splitlines()[-1])

    def test_hostile_scripts(self):
        call = "; deepspeed.initialize(model=1, optimizer=2, config={'a': 1}); print('done')"
        for hostility in ("import sys; sys.stderr = None", "import sys; sys.stderr.close()",
                          "import os; os.environ.clear()", "import sys; sys.modules.clear()",
                          "import builtins; builtins.len = 7", "import json; json.load = None",
                          "import inspect; inspect.signature = None", "import os; os.getpid = None",
                          "import builtins; builtins.open = None", "import sys; del sys.modules['dsat_inject']"):
            with self.subTest(hostility):
                self.assertEqual(self.run_python("import deepspeed; " + hostility + call)[0], "done\n")

    def test_scripts_that_change_how_python_imports_and_starts(self):
        """Each ends as without the hook; it is there wherever Python still asks for it."""
        train = ("import deepspeed, json; print(json.dumps(deepspeed.initialize(model=1, optimizer=2, config=%s)[0]"
                 ".config))" % OWN)
        (self.dir / "train.py").write_text(train)
        again = "import os, sys; os.%s(sys.executable, [sys.executable, %s'train.py']%s)"
        for change, is_there in (
                ("import builtins; real = builtins.__import__\n"
                 "builtins.__import__ = lambda *a, **n: real(*a, **n)\n" + train, True),
                ("import sys; sys.meta_path = list(sys.meta_path)\n" + train, True),
                ("import sys; sys.meta_path[:] = [f for f in sys.meta_path if isinstance(f, type)]\n" + train, False),
                ("import sys; sys.path_hooks.clear(); sys.path_importer_cache.clear()\n" + train, None),
                ("import importlib; importlib.invalidate_caches(); " + train + "; importlib.reload(deepspeed)", True),
                (again % ("execv", "", ""), True), (again % ("execv", "'-S', ", ""), False),
                (again % ("execve", "'-I', ", ", {}"), False),
                ("import os, sys\nif os.fork() == 0:\n    import runpy; runpy.run_path('train.py'); sys.stdout.flush();"
                 " os._exit(3)\nsys.exit(os.waitstatus_to_exitcode(os.wait()[1]))", True),
                ("import deepspeed, os, sys\nif os.fork() == 0:\n    exec(open('train.py').read()); sys.stdout.flush();"
                 " os._exit(3)\nsys.exit(os.waitstatus_to_exitcode(os.wait()[1]))", True)):
            with self.subTest(change):
                self.assert_ends_as_without(["-c", change], is_there)
        for flags, variables, is_there in (([], {"PYTHONNOUSERSITE": "1"}, True), (["-s"], {}, True),
                                           (["-S"], {}, False), (["-B", "-O"], {}, True),
                                           (["-X", "importtime"], {}, True)):
            with self.subTest((flags, variables)):
                self.assert_ends_as_without([*flags, "train.py"], is_there, **variables)

    def test_a_sitecustomize_of_the_users_own(self):
        (self.dir / "own").mkdir()
        (self.dir / "train.py").write_text("import deepspeed, json; print(json.dumps(deepspeed.initialize("
                                           "model=1, optimizer=2, config=%s)[0].config))" % OWN)
        for text, is_there in (("print('mine')\n", True), ("raise RuntimeError\n", True), ("import deepspeed\n", True),
                               ("import sys; sys.meta_path.reverse()\n", None)):
            with self.subTest(text):
                (self.dir / "own/sitecustomize.py").write_text(text)
                self.assert_ends_as_without(["train.py"], is_there, PYTHONPATH="own:%s" % (FIXTURES / "injection"))

    def assert_ends_as_without(self, words, is_there, **variables):
        """`is_there`: whether the configuration is injected; None: it may be."""
        ends = []
        for hook in (False, True):
            own = {**self.variables, **variables}
            path = own["PYTHONPATH"].replace("%s:" % (BUILD / "probe"), "")
            own["PYTHONPATH"] = "%s:%s" % (BUILD / "probe", path) if hook else path
            if not hook:
                own.pop("DSAT_INJECT")
            ends.append(subprocess.run([sys.executable, *words], env=own, cwd=self.dir, capture_output=True, text=True,
                                       timeout=120))
        without, with_it = ends
        self.assertEqual(with_it.returncode, without.returncode, with_it.stderr)
        was_there = with_it.stdout.replace(json.dumps(MERGED), json.dumps(eval(OWN))) == without.stdout and (
            with_it.stdout != without.stdout)
        self.assertTrue(was_there or with_it.stdout == without.stdout, with_it.stdout + with_it.stderr)
        if is_there is not None:
            self.assertEqual(was_there, is_there, with_it.stdout + with_it.stderr)

    def test_an_import_that_fails_and_is_tried_again(self):
        (self.dir / "broken").mkdir()
        (self.dir / "broken/deepspeed.py").write_text("raise ImportError('no compiler')")
        retry = ("import sys\nsys.path.insert(0, 'broken')\ntry:\n    import deepspeed\nexcept ImportError as error:\n"
                 "    print(error)\nsys.path.pop(0)\nimport deepspeed")
        config, _ = self.configuration("deepspeed.initialize(model=1, optimizer=2, config=own)", retry)
        self.assertEqual(config, MERGED)
        output, printed = self.run_python("import sys\nsys.path.insert(0, 'broken')\nimport deepspeed", status=1)
        self.assertIn("ImportError: no compiler", printed.splitlines()[-1])

    def test_a_rank_that_makes_no_engine_says_so_and_a_launcher_does_not(self):
        self.assertEqual(self.run_python("import deepspeed"), ("", ""))
        self.assertIn(NOT + "deepspeed.initialize made no engine", self.run_python("import deepspeed", RANK="0")[1])
        self.assertEqual(self.run_python("import deepspeed", RANK="1"), ("", ""))
        self.assertEqual(self.run_python("pass", RANK="0"), ("", ""))

    def test_without_the_variable_it_is_not_there(self):
        self.variables.pop("DSAT_INJECT")
        config, printed = self.configuration("deepspeed.initialize(model=1, optimizer=2, config=own)",
                                          "import sys, deepspeed; assert 'dsat_inject' not in sys.modules")
        self.assertEqual((config, printed), (eval(OWN), ""))

    def test_python_sees_the_function_that_it_knows(self):
        output, _ = self.run_python("import deepspeed, inspect; f = deepspeed.initialize; "
                                    "print(f.__name__, f.__doc__, 'mesh_param' in inspect.signature(f).parameters)")
        self.assertEqual(output, "initialize Initialize the engine. True\n")


if __name__ == "__main__":
    unittest.main()
