"""Every option that --help offers, with every choice that it names, is taken: nothing that is offered is refused."""
import os
import re
import shutil
import subprocess
import unittest

from support import BUILD, FIXTURES, HOST, PROJECT, HostTest

SCENARIO = str(PROJECT / "examples/sim/1-gpu-gpt2-medium.json")
EVENTS = os.open(os.devnull, os.O_WRONLY)
OPTION = re.compile(r"^  (--[a-z-]+)(?: ([A-Z]\S*|[a-z]+(?:\|[a-z]+)+))?(?: \(=|  | [^(])", re.M)

# Values of options whose --help names neither choices nor a plain number.
VALUES = {
    "--searcher": ["guided", "asha", "binary", "random", "grid", str(BUILD / "plugins/libgrid.so")],
    "--profiler": ["profiler"],
    "--metric": ["FLOPS_per_gpu", "throughput", "latency", "forward", "backward", "step"],
    "--zero-stages": ["0", "1", "2", "3"], "--space": ["space.json"], "--device-memory": ["80GB", "512MiB"],
    "--time-budget": ["90s", "15m", "2h"], "--trial-timeout": ["1m"], "--no-progress-timeout": ["1m"],
    "--end-profile-step": ["5"], "--global-batch": ["8"], "--slots": ["1", "auto"], "--slots-per-trial": ["1"],
    "--max-slots": ["1"], "--num-gpus": ["1"], "--num-nodes": ["1"], "--hostfile": ["hosts"],
    "--include": ["localhost:0"],
    "--ds-config": ["ds_config.json"], "--arg-mapping": ["train_micro_batch_size_per_gpu=--batch"],
    "--output-dir": ["elsewhere"], "--launcher": ["pdsh", "openmpi", "mpich", "impi", "slurm", "mvapich"],
    "--master-port": ["29999"], "--search-runner-config": ["runner.yaml"], "--precision": ["fp16", "bf16", "fp32"],
    "--exact": [None], "--events": [str(EVENTS)],
    "--loss-pattern": ["loss: (.+)"], "--grad-norm-pattern": ["norm=(.+)"],
    "--metric-pattern": ["tps: (.+)"], "--device": ["A100", "H100-SXM", "MI300X"],
    "--runner": ["local", "sim"], "--budget": ["2gpuh"], "--sim": [SCENARIO],
    "--max-oom-probability": ["0.1"], "--memory-margin": ["0.1"],
    "--optimizer": ["adam", "adamw", "sgd", "sgd-momentum"], "--checkpointing": ["none", "selective", "full"],
}
# Checked against a real Slurm (test_slurm_bad_input.py), which this machine need not have.
OF_CLUSTERS = {"--partition", "--account", "--qos", "--constraint", "--gres", "--job-time", "--slurm-option",
               "--slurm-launch", "--runner-command"}
TRANSFORMER = ["--layers", "2", "--hidden", "64", "--heads", "2", "--seq", "16"]
# What an option needs beside it.
BESIDE = {"--runner sim": ["--sim", SCENARIO], "--exclude": ["--slots", "2"], "--sim": ["--runner", "sim"],
          "--smaller-is-better": ["--metric-pattern", "tps: (.+)"],
          "--device": ["--tokens-per-sample", "64"]}


class Help(HostTest):
    def setUp(self):
        super().setUp()
        (self.dir / "space.json").write_text('{"zero_optimization.overlap_comm": [true, false]}')
        (self.dir / "hosts").write_text("localhost slots=2\n")
        (self.dir / "runner.yaml").write_text("name: mine\n")
        shutil.copy(FIXTURES / "protocol_trial.py", self.dir / "train.py")
        shutil.copytree(FIXTURES / "experiment", self.dir / "model")
        # A launcher that fails at once: whether an option is taken is known before.
        (self.dir / "bin").mkdir()
        (self.dir / "bin/deepspeed").symlink_to("/bin/false")
        self.environment = dict(os.environ, PATH="%s:%s" % (self.dir / "bin", os.environ["PATH"]))

    def host(self, *arguments):
        return subprocess.run([HOST, *map(str, arguments)], cwd=self.dir, env=self.environment, capture_output=True,
                              text=True, timeout=120, pass_fds=(EVENTS,))

    def offered(self, *form):
        result = self.host(*form, "--help", "all")
        self.assert_ok(result)
        options = []
        for name, value in OPTION.findall(result.stdout):
            if name == "--help":
                continue
            if name in OF_CLUSTERS:
                continue
            usual = [None] if not value else value.split("|") if "|" in value and "N" not in value else ["2"]
            choices = VALUES.get(name) or usual
            if name == "--runner":  # a form may refuse some
                choices = [choice for choice in choices if choice in value.split("|")]
            options += [(name, choice) for choice in choices]
        names = {name for name, _ in options}
        self.assertGreater(len(names), 9, "what --help lists")
        self.assertEqual(names, set(re.findall(r"^  (--[a-z-]+)", result.stdout, re.M)) - {"--help"} - OF_CLUSTERS)
        return options

    def assert_taken(self, begin, form=(), end=(), values=()):
        """Each option of a form, behind `begin` and before `end`: the study may fail, but nothing is refused."""
        values = dict(values)
        for name, choice in self.offered(*form):
            given = [name] + ([] if choice is None else [values.get(name, choice)])
            beside = BESIDE.get(" ".join(given), BESIDE.get(name, []))
            budget = [] if name == "--max-trials" or not end and not begin else ["--max-trials", "1"]
            with self.subTest(" ".join(given)):
                result = self.host(*begin, *budget, *given, *beside, *end)
                self.assertIn(result.returncode, (0, 1), result.stderr[-2000:])
                for folder in ("dsat-results", "elsewhere", "autotuning_results", "autotuning_exps"):
                    shutil.rmtree(self.dir / folder, ignore_errors=True)

    def test_the_help_fits_a_screen_and_names_options_that_there_are(self):
        everything = self.host("--help", "all").stdout
        self.assertGreater(len(everything.splitlines()), 80)
        for words in (["--help"], ["-h"], ["help"]):
            result = self.host(*words)
            self.assert_ok(result)
            lines = result.stdout.splitlines()
            self.assertLessEqual(len(lines), 40)
            self.assertLessEqual(max(map(len, lines)), 80)
            for option in re.findall(r"^  (?:-\w+, )?(--[a-z-]+) ", result.stdout, re.M):
                self.assertRegex(everything, r"(?m)^  %s\b" % option)
        self.assertEqual(self.host("help", "all").stdout, everything)

    def test_of_a_searcher_that_is_named(self):
        own = self.host("--searcher", "asha", "--help").stdout
        self.assertIn("  --max-rungs ", own)
        self.assertNotIn("--max-trials", own)
        self.assertIn("  --max-rungs ", self.host("--searcher", "asha", "--help", "all").stdout)

    def test_of_a_plain_command(self):
        command = ["--", "/bin/false", "--deepspeed_config", "ds_config.json", "--batch", "1"]
        deepspeeds = {"--autotuning", "--master-port", "--launcher", "--module", "--no-python"}
        everything = self.offered
        self.offered = lambda *form: [o for o in everything(*form) if o[0] not in deepspeeds]
        self.assert_taken([], end=command, values={"--exclude": "localhost:1"})

    def test_of_each_searcher(self):
        for searcher in ("guided", "asha", "binary", "random", "grid"):
            own = set(self.offered("--searcher", searcher)) - set(self.offered())
            self.assertTrue(own or searcher == "grid", searcher)
            for name, choice in own:
                with self.subTest("%s %s %s" % (searcher, name, choice)):
                    result = self.host("--runner", "sim", "--sim", SCENARIO, "--searcher", searcher, "--max-trials", 2,
                                       name, *filter(None, [choice]))
                    self.assert_ok(result)

    def test_of_deepspeeds_form(self):
        script = ["train.py", "--deepspeed_config", "ds_config.json", "--batch", "1", "--misbehave", "typo"]
        for name, choice in self.offered():
            if name in ("--runner", "--sim", "--slots-per-trial", "--module", "--no-python", "--autotuning"):
                continue
            with self.subTest("%s %s" % (name, choice)):
                given = [name] + ([] if choice is None else ["localhost:1" if name == "--exclude" else choice])
                result = self.host("--autotuning", "tune", *given, *BESIDE.get(name, []), *script)
                self.assertIn(result.returncode, (0, 1), result.stderr[-2000:])
                for folder in ("autotuning_results", "autotuning_exps", "elsewhere"):
                    shutil.rmtree(self.dir / folder, ignore_errors=True)

    def test_of_the_experiment_form(self):
        experiment = (self.dir / "model/deepspeed.yaml").read_text()
        (self.dir / "model/deepspeed.yaml").write_text(
            experiment.replace("slots_per_trial: 2", "slots_per_trial: 1").replace("script.py", "script.py --batch 1"))
        for form in (["asha"], ["model/deepspeed.yaml", "model"]):
            begin = form + ["model/deepspeed.yaml", "model"] * (len(form) == 1)
            self.assert_taken(begin, form=form, values={"--include": "space.json", "--exclude": "localhost:1"})

    def test_of_estimate(self):
        base = {"--num-params": "1e9", "--world-size": "8"}
        for name, choice in self.offered("estimate"):
            with self.subTest("%s %s" % (name, choice)):
                given = {**base, **({name: choice} if name not in TRANSFORMER and choice is not None else {})}
                words = [word for pair in given.items() for word in pair] + ([name] if choice is None else [])
                self.assert_ok(self.host("estimate", *words, *TRANSFORMER))

    def test_what_another_form_takes_is_not_offered(self):
        offered = {name for name, _ in self.offered("asha")}
        self.assertFalse(offered & {"--sim", "--ds-config", "--searcher", "--autotuning", "--launcher"}, offered)
        self.assertEqual([choice for name, choice in self.offered("asha") if name == "--runner"], ["local"])
        everywhere = self.host("asha", "--help").stdout
        for name in sorted(OF_CLUSTERS):
            self.assertIn("  %s " % name, everywhere, "taken, but not offered")
        self.assertIn("--searcher", {name for name, _ in self.offered("model/deepspeed.yaml", "model")})
        for words in (["--runner", "sim"], ["--sim", SCENARIO]):
            refused = self.host("asha", "model/deepspeed.yaml", "model", *words)
            self.assert_ok(refused, 2)
            self.assertIn("runs no experiment", refused.stderr)
        self.assertIn("plugin ABI", self.host("asha", "model/deepspeed.yaml", "model", "--version").stdout)


if __name__ == "__main__":
    unittest.main()
