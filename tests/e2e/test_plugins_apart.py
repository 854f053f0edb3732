"""Plugins that do not come with dsat: in a process of their own, with defects, and checked by `dsat-host validate`."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import defective_plugins
from support import BUILD, HOST, PROJECT, HostTest

FIXTURES = BUILD / "tests/fixture-plugins"
SIMULATION = PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"


class DefectivePlugins(unittest.TestCase):
    def test_a_study_survives_its_plugin_as_far_as_a_process_can(self):
        for name in defective_plugins.SAMPLE:
            for isolated in (True, False):
                if defective_plugins.DEFECTS[name][0 if isolated else 1] == "-":
                    continue
                with self.subTest(defect=name, isolated=isolated):
                    wanted, got, line = defective_plugins.run(name, isolated)
                    self.assertEqual(got, wanted, line)


    def test_a_crash_in_this_process_says_how_to_leave_the_searcher(self):
        wanted, got, line = defective_plugins.run("segv", False)
        self.assertEqual(got, wanted, line)
        self.assertIn("--searcher guided", line)


class InProcess(HostTest):
    def test_a_library_that_dies_when_it_is_loaded_is_one_line_and_status_four(self):
        result = subprocess.run([HOST, "--runner", "sim", "--sim", SIMULATION, "--searcher",
                                 FIXTURES / "libdies_when_loaded.so", "--isolation", "none", "--output-dir",
                                 self.dir / "run"],
                                cwd=self.dir, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertIn("libdies_when_loaded.so: a process", result.stderr)
        self.assertFalse((self.dir / "run").exists())

    def test_without_a_process_to_try_it_in_a_crash_in_the_load_is_named_all_the_same(self):
        alone = shutil.copy(HOST, self.dir / "dsat-host")  # where no dsat-plugin-host is, unless dsat is installed
        result = subprocess.run([alone, "--searcher", FIXTURES / "libdies_when_loaded.so", "--isolation", "none",
                                 "--help"],
                                cwd=self.dir, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(result.stderr, r"libdies_when_loaded\.so: (load: it has called abort|a process that loads)")


class IsolatedSearchers(HostTest):
    def test_proposals_are_the_same_isolated_and_in_process(self):
        for searcher in ("guided", "asha", "random"):
            with self.subTest(searcher=searcher):
                runs = []
                for way in ("process", "none"):
                    run = self.dir / f"{searcher}-{way}"
                    result = subprocess.run([HOST, "--runner", "sim", "--sim", SIMULATION, "--searcher", searcher,
                                             "--isolation", way, "--max-trials", "40", "--output-dir", run, "--quiet"],
                                            cwd=self.dir, capture_output=True, text=True, timeout=240)
                    self.assert_ok(result)
                    runs.append(self.decisions(run))
                self.assertGreater(len(runs[0]), 10)
                self.assertEqual(*runs)

    def test_an_isolated_study_resumes_where_it_was(self):
        whole, half = self.dir / "whole", self.dir / "half"
        common = [HOST, "--runner", "sim", "--sim", str(SIMULATION), "--searcher", "asha", "--isolation",
                  "process", "--quiet"]
        self.assert_ok(subprocess.run([*common, "--max-trials", "40", "--output-dir", whole], cwd=self.dir,
                                      capture_output=True, text=True, timeout=240))
        self.assert_ok(subprocess.run([*common, "--max-trials", "25", "--output-dir", half], cwd=self.dir,
                                      capture_output=True, text=True, timeout=240))
        result = subprocess.run([HOST, "resume", half, "--max-trials", "40", "--quiet"], cwd=self.dir,
                                capture_output=True, text=True, timeout=240)
        self.assert_ok(result)
        self.assertGreaterEqual(len(self.show(half)["trials"]), 40)
        self.assertEqual(self.decisions(half), self.decisions(whole))

    def test_a_search_is_taken_over_whatever_was_asked_for_before(self):
        asked = [{"zero_optimization": {"reduce_bucket_size": -1}}, {"zero_optimization": {"stage": "two"}},
                 {"train_micro_batch_size_per_gpu": 2.5}, {"train_micro_batch_size_per_gpu": 1}]
        script = {"start": [{"try": overrides} for overrides in asked], "result *": [{"finish": "enough"}]}
        run = self.dir / "run"
        self.assert_ok(subprocess.run([HOST, "--runner", "sim", "--sim", SIMULATION, "--searcher",
                                       FIXTURES / "libscripted.so", "--searcher.script", json.dumps(script),
                                       "--output-dir", run, "--quiet"], cwd=self.dir, capture_output=True, text=True,
                                      timeout=240))
        outcomes = [trial["outcome"] for trial in self.show(run)["trials"]]
        self.assertEqual(outcomes.count("invalid_config"), 3, outcomes)
        self.assert_ok(subprocess.run([HOST, "resume", run, "--searcher", "guided", "--max-trials", "20", "--quiet"],
                                      cwd=self.dir, capture_output=True, text=True, timeout=240))

    def scripted(self, run, script, *options):
        return subprocess.run([HOST, "--runner", "sim", "--sim", SIMULATION, "--searcher", FIXTURES / "libscripted.so",
                               "--searcher.script", json.dumps(script), "--output-dir", run, "--quiet", *options],
                              cwd=self.dir, capture_output=True, text=True, timeout=240)

    def test_a_study_that_its_searcher_failed_says_how_to_go_on(self):
        run = self.dir.resolve() / "run"
        result = self.scripted(run, {"start": [{"throw": "lost"}]})
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("plugin scripted: start: lost", result.stderr)
        lines = result.stdout.splitlines()
        self.assertIn(f"dsat-host resume {run}", lines)
        self.assertIn(f"dsat-host resume {run} --searcher guided", lines[lines.index(f"dsat-host resume {run}") + 1])

    def test_a_study_that_its_profiler_failed_does_not_name_another_searcher(self):
        run = self.dir.resolve() / "run"
        result = self.scripted(run, {}, "--profiler", FIXTURES / "libscripted.so", "--profiler.script",
                               json.dumps({"start": [{"throw": "lost"}]}))
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn(f"dsat-host resume {run}", result.stdout.splitlines())
        self.assertNotIn("--searcher guided", result.stdout)

    def test_options_that_the_searcher_refuses_cost_no_trial(self):
        for way in ("process", "none"):
            with self.subTest(way=way):
                run = self.dir / "run"
                result = self.scripted(run, {"create": "depth and width exclude each other"}, "--isolation", way)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.strip(),
                                 "dsat-host: plugin scripted: create: depth and width exclude each other")
                self.assertFalse(run.exists())


class Validate(HostTest):
    def validate(self, file):
        result = subprocess.run([HOST, "validate", file, "--json", "--plugin-timeout", "60s"], cwd=self.dir,
                                capture_output=True, text=True, timeout=240)
        return result.returncode, {check["check"]: check for check in json.loads(result.stdout)["checks"]}

    def test_our_own_plugins_pass(self):
        for name in ("random", "profiler"):
            status, checks = self.validate(BUILD / f"plugins/lib{name}.so")
            self.assertEqual(status, 0, checks)
            self.assertEqual({check["status"] for check in checks.values()} - {"passed", "warned"}, set(), checks)

    def test_what_is_wrong_is_named(self):
        status, checks = self.validate(FIXTURES / "libbad_major.so")
        self.assertEqual((status, checks["loading"]["status"]), (1, "failed"))
        self.assertIn("plugin ABI 2", checks["loading"]["reason"])
        self.assertNotIn("life cycle", checks)
        status, checks = self.validate(FIXTURES / "libbad_create_null.so")
        self.assertEqual((status, checks["life cycle"]["status"]), (1, "failed"))
        self.assertIn("incomplete strategy", checks["life cycle"]["reason"])
        status, checks = self.validate(FIXTURES / "libwalker_clock.so")
        self.assertEqual((status, checks["determinism"]["status"]), (1, "failed"))

    def test_a_crash_is_one_line_and_the_other_checks_go_on(self):
        status, checks = self.validate(FIXTURES / "libdefective_crashing.so")
        self.assertEqual(status, 1)
        self.assertEqual(checks["life cycle"]["status"], "crashed", checks)
        # A sanitizer reports the crash and then exits.
        crash = "ABORTING" if "DSAT_SANITIZE" in os.environ else "signal 11"
        self.assertIn(crash, checks["life cycle"]["reason"])
        self.assertEqual(checks["descriptor"]["status"], "passed")

    def test_no_such_file_is_status_two(self):
        result = subprocess.run([HOST, "validate", "nothing.so"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1)

    def test_a_library_that_crashes_is_one_line_of_the_list(self):
        folder = self.dir / "plugins"
        folder.mkdir()
        for name in ("dies_when_loaded", "walker"):
            (folder / f"lib{name}.so").symlink_to(FIXTURES / f"lib{name}.so")
        result = subprocess.run([HOST, "plugins", "--json"], cwd=self.dir, capture_output=True, text=True, timeout=120,
                                env={**os.environ, "DSAT_PLUGIN_PATH": str(folder)})
        self.assert_ok(result)
        listed = json.loads(result.stdout)
        self.assertIn("walker", [plugin["name"] for plugin in listed["plugins"]])
        self.assertEqual([pathlib.Path(entry["file"]).name for entry in listed["broken"]], ["libdies_when_loaded.so"])
        self.assertIn("signal", listed["broken"][0]["reason"])


if __name__ == "__main__":
    unittest.main()
