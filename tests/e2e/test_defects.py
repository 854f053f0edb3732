"""What stopped users of the tools before this one, and no other test shows: docs/defects.md lists them all."""
import json
import os
import re
import subprocess
import unittest
from unittest import mock

from support import CONFIG, FIXTURES, HOST, HostTest, PROJECT, SCRIPT

MEMORY = ["--device-memory", "1GB"]
# Writes a result without a metric where the micro batch is odd and above 4.
HALF_MUTE = f"""
import json, sys
sys.path.insert(0, {str(FIXTURES)!r})
import protocol_trial
with open(sys.argv[2]) as file:
    config = json.load(file)
micro_batch = config["train_micro_batch_size_per_gpu"]
if config["autotuning"].get("model_info", {{}}).get("profile") or micro_batch % 2 == 0 or micro_batch < 5:
    sys.exit(protocol_trial.main())
with open(config["autotuning"]["metric_path"], "w") as file:
    json.dump({{"rank": 0}}, file)
"""


class Defects(HostTest):
    def setUp(self):
        super().setUp()
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)

    def add_program(self, name, script):
        (self.dir / "bin").mkdir(exist_ok=True)
        path = self.dir / "bin" / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        os.environ["PATH"] = f"{self.dir / 'bin'}:{os.environ['PATH']}"

    def tune(self, *options, command=None, trials=8, status=0, name="out"):
        result = self.run_host(["--max-trials", trials, "--output-dir", name, *options], command)
        self.assert_ok(result, status)
        return self.show(self.dir / name)["trials"]

    def test_a_trial_without_a_metric_costs_itself_alone(self):
        (self.dir / "half_mute.py").write_text(HALF_MUTE)
        trials = self.tune(*MEMORY, "--searcher", "binary", trials=16,
                           command=[*SCRIPT[:-1], "half_mute.py", "--deepspeed_config", "ds_config.json"])
        outcomes = [trial["outcome"] for trial in trials]
        self.assertIn("failed", outcomes)
        self.assertGreater(len(outcomes), outcomes.index("failed") + 1, "the study ended with it")
        for trial in trials:
            self.assertEqual(trial["metrics"] is not None, trial["outcome"] == "completed", trial)
        self.assertTrue((self.dir / "out/best_ds_config.json").exists())

    def test_one_machine_needs_no_remote_shell(self):
        for name in ("ssh", "pdsh", "sshd"):
            self.add_program(name, f"echo {name} >> {self.dir}/called; exit 1\n")
        self.tune(trials=4)
        self.assertFalse((self.dir / "called").exists())

    def test_the_hash_seed_of_python_decides_nothing(self):
        for seed in ("1", "2"):
            os.environ["PYTHONHASHSEED"] = seed
            self.tune(*MEMORY, "-mct", 1, trials=12, name=seed)
        self.assertEqual(self.decisions(self.dir / "1"), self.decisions(self.dir / "2"))

    def test_a_trial_is_any_command(self):
        self.add_program("accelerate", '[ "$1" = launch ] || exit 9\nshift\n'
                         '[ "$1" = --main_process_port ] && shift 2\nexec ' + " ".join(SCRIPT[:-1]) + ' "$@"\n')
        train = SCRIPT[-1]
        for i, command in enumerate((["accelerate", "launch", train, "--deepspeed_config", "ds_config.json"],
                                     ["sh", "-c",
                                      " ".join(SCRIPT) + " --deepspeed_config $DSAT_DS_CONFIG # {ds_config}"],
                                     ["env", "LANG=C", *SCRIPT, "--deepspeed_config={ds_config}"])):
            base = [] if i == 0 else ["--ds-config", "ds_config.json"]
            with self.subTest(command[0]):
                trials = self.tune(*base, command=command, trials=4, name=f"out{i}")
                self.assertEqual({trial["outcome"] for trial in trials}, {"completed"})

    def test_a_key_with_a_stray_space_is_reported(self):
        self.write_config({**CONFIG, "gradient_clipping ": 1.0})
        result = self.run_host(["--max-trials", 3, "--output-dir", "out"])
        self.assertIn("gradient_clipping ", result.stdout + result.stderr)
        self.assertRegex(result.stdout + result.stderr, "white space|space around|stray")

    def test_ashas_whole_numbers_are_numbers(self):
        trials = self.tune(*MEMORY, "--searcher", "asha", "--max-rungs", 4, "--min-binary-search-trials", 2,
                           "--divisor", 3, "--asha-early-stopping", 1, trials=12)
        self.assertEqual(len(trials), 12)
        options = self.show(self.dir / "out")["study"]["searcher"]["options"]
        names = ("max-rungs", "min-binary-search-trials", "divisor", "asha-early-stopping")
        self.assertEqual([options[name] for name in names], [4, 2, 3, 1])

    def test_other_optimizers_and_precisions_on_one_machine(self):
        for i, changes in enumerate(({"optimizer": {"type": "Lion", "params": {"lr": 0.1}}, "fp16": {"enabled": False}},
                                     {"optimizer": {"type": "AdamW"}, "fp16": {"enabled": False},
                                      "bf16": {"enabled": True}})):
            self.write_config({**CONFIG, **changes})
            self.tune(*MEMORY, trials=5, name=f"out{i}")

    def test_the_next_trial_starts_the_moment_its_slots_are_free(self):
        scenario = PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"
        result = subprocess.run([HOST, "--runner", "sim", "--sim", str(scenario), "-mct", "1", "-mt", "12",
                                 "--output-dir", "out"],
                                cwd=self.dir, capture_output=True, text=True, timeout=120)
        self.assert_ok(result)
        trials = self.show(self.dir / "out")["trials"]
        for earlier, later in zip(trials, trials[1:]):
            self.assertEqual(later["started_at"], earlier["ended_at"])  # in simulated time, where a poll would show

    def test_what_stage_3_does_read_can_be_tuned_there(self):
        keys = [f"zero_optimization.stage3_{name}" for name in ("prefetch_bucket_size", "param_persistence_threshold",
                                                                "max_live_parameters")]
        space = {key: {"stages": [3], "values": [100000, 10000000]} for key in keys}
        (self.dir / "space.json").write_text(json.dumps(space))
        trials = self.tune(*MEMORY, "--space", "space.json", "--searcher", "random", trials=20)
        for trial in trials[3:]:
            zero = trial["config"]["zero_optimization"]
            found = [key for key in keys if key.split(".")[1] in zero]
            self.assertEqual(found, keys if zero["stage"] == 3 else [])
        self.assertTrue(any(t["config"]["zero_optimization"]["stage"] == 3 for t in trials))


class Table(unittest.TestCase):
    def test_it_names_every_defect_and_tests_that_exist(self):
        page = (PROJECT / "docs/defects.md").read_text()
        rows = [row for row in (PROJECT / "tests/e2e/defects.txt").read_text().splitlines() if "|" in row]
        for numbers in (re.findall(r"^\| (\d+)", page, re.M), [row.split("|")[0] for row in rows]):
            self.assertEqual([int(number) for number in numbers], list(range(1, 66)))
        tests = "".join(path.read_text() for path in (PROJECT / "tests").rglob("*") if path.suffix in (".py", ".cc"))
        for row in rows:
            named = re.findall(r"[\w.]+", row.partition("|")[2])
            self.assertTrue(named, row)
            for name in named:
                suite, _, case = name.rpartition(".")
                pattern = rf"\({suite}, {case}\)" if suite else rf"def {name}\(|class {name}\("
                self.assertRegex(tests, pattern, row)


if __name__ == "__main__":
    unittest.main()
