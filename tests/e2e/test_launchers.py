"""COMMANDs of every kind: each trial has a port of its own, given in the way that its launcher reads."""
import json
import os
import shutil
import subprocess
import sys
import unittest

from support import FIXTURES, HOST, HostTest

PYTHON = [sys.executable, "-S"]
SCRIPT = str(FIXTURES / "protocol_trial.py")

# Stands for torchrun and accelerate: takes their options, refuses a port in use by another trial, runs the script once.
LAUNCHER = """#!%s -SE
import json, os, sys
arguments, flags = sys.argv[1:], {}
if os.path.basename(sys.argv[0]) == "accelerate":
    assert arguments.pop(0) == "launch"
while arguments[0].startswith("-"):
    flag, equals, value = arguments.pop(0).partition("=")
    if flag in ("--use_deepspeed", "--standalone"):
        continue
    flags[flag] = value if equals else arguments.pop(0)
port = flags.get("--master_port") or flags["--main_process_port"]
with open(os.environ["DSAT_TRIAL_DIR"] + "/../../../ports", "a") as file:
    file.write(port + "\\n")
assert port == os.environ["MASTER_PORT"]
if "--config_file" in flags:  # as accelerate up to 1.1: the file goes first
    with open(flags["--config_file"]) as file:
        arguments += ["--deepspeed_config", json.load(file)["deepspeed_config"]["deepspeed_config_file"]]
count = flags.get("--nproc_per_node") or flags.get("--num_processes") or "1"
variables = dict(os.environ, WORLD_SIZE=count, RANK="0")
os.execve(sys.executable, [sys.executable, "-S", "-E"] + arguments, variables)
""" % sys.executable

# Stands for srun and mpirun: passes its options over and becomes the program.
WRAPPER = """#!/bin/sh
while :; do case $1 in -n|-N|-np|-J) shift 2;; -*) shift;; *) break;; esac; done
exec "$@"
"""

# As deepspeed.init_distributed where a variable of the ranks is missing: MPI gives the place, and the port is fixed.
PLAIN = """import os, runpy
if not {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ):
    os.environ["MASTER_PORT"] = "29500"
with open(os.environ["DSAT_TRIAL_DIR"] + "/../../../ports", "a") as file:
    file.write(os.environ["MASTER_PORT"] + "\\n")
runpy.run_path(%r, run_name="__main__")
""" % SCRIPT


class Launchers(HostTest):
    def setUp(self):
        super().setUp()
        self.bin = self.dir / "bin"
        (self.bin / "torch" / "distributed").mkdir(parents=True)
        for name, text in (("torchrun", LAUNCHER), ("accelerate", LAUNCHER), ("torch/distributed/run.py", LAUNCHER),
                           ("srun", WRAPPER), ("mpirun", WRAPPER)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def tune(self, *command, options=(), config=("--deepspeed_config", "ds_config.json")):
        environment = {**os.environ, "PATH": "%s:%s" % (self.bin, os.environ["PATH"]),
                       "PYTHONPATH": "%s:%s" % (self.bin, FIXTURES)}
        arguments = [HOST, "--output-dir", "out", "--max-trials", 5, *options, "--", *command, *config]
        result = subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True, timeout=240,
                                env=environment)
        self.assert_ok(result)
        return [(self.dir / "out/trials" / str(t["id"]) / "cmd.txt").read_text() for t in self.show("out")["trials"]
                if t["attempt"] > 0]

    def assert_ports(self, commands, flag):
        ports = (self.dir / "ports").read_text().split()
        self.assertEqual(len(set(ports)), len(ports), "a port was used twice")
        for command in commands:
            self.assertEqual(command.count(flag + " "), 1)
        self.assertNotIn(flag, (self.dir / "out/best_cmd.txt").read_text())

    def test_torchrun(self):
        commands = self.tune("torchrun", "--standalone", "--nproc_per_node", 2, SCRIPT, options=["--slots", 4])
        self.assert_ports(commands, "--master_port")

    def test_torchrun_as_a_module_below_srun(self):
        commands = self.tune("srun", "-N", 1, "--label", *PYTHON, "-m", "torch.distributed.run",
                             "--nproc_per_node=2", SCRIPT)
        self.assert_ports(commands, "--master_port")
        self.assertTrue(all("srun -N 1 --label" in command for command in commands))

    def test_accelerate(self):
        commands = self.tune("accelerate", "launch", "--use_deepspeed", "--num_processes", 2, SCRIPT)
        self.assert_ports(commands, "--main_process_port")

    def test_accelerate_whose_settings_file_names_the_configuration(self):
        settings = {"deepspeed_config": {"deepspeed_config_file": "ds_config.json"}}
        (self.dir / "acc.yaml").write_text(json.dumps(settings))
        self.tune("accelerate", "launch", "--config_file", "acc.yaml", SCRIPT, config=())
        best = (self.dir / "out/best_cmd.txt").read_text()
        self.assertIn("--config_file %s/out/best_accelerate_config.yaml" % self.dir, best)
        named = json.loads((self.dir / "out/best_accelerate_config.yaml").read_text())
        self.assertEqual(named["deepspeed_config"]["deepspeed_config_file"], str(self.dir / "out/best_ds_config.json"))

    def test_a_tuned_size_reaches_torchrun(self):
        commands = self.tune("torchrun", SCRIPT,
                             options=["--num-gpus", "1,2", "--slots", 2, "-z", 1, "--searcher", "random"])
        flags = {word for command in commands for word in ("--nproc_per_node 1 ", "--nproc_per_node 2 ")
                if word in command}
        self.assertEqual(len(flags), 2)

    def test_a_size_that_dsat_is_given_replaces_the_commands_in_trials_and_in_the_best(self):
        options = ["--slots", 4, "--slots-per-trial", 2]
        for command, count in ((["torchrun", "--nproc_per_node", 4], "--nproc_per_node"),
                               (["accelerate", "launch", "--num_processes=4"], "--num_processes")):
            commands = self.tune(*command, SCRIPT, options=options)
            for line in [*commands, (self.dir / "out/best_cmd.txt").read_text()]:
                self.assertIn("%s 2 " % count, line)
                self.assertNotIn("%s 4" % count, line)
            shutil.rmtree(self.dir / "out")

    def test_a_plain_script_below_mpirun(self):
        commands = self.tune("mpirun", "-np", 2, *PYTHON, SCRIPT, "--world-size", 2)
        self.assertTrue(all("MASTER_PORT=" in command and "--master_port" not in command for command in commands))

    def test_plain_scripts_side_by_side_meet_at_ports_of_their_own(self):
        (self.dir / "plain.py").write_text(PLAIN)
        self.tune(*PYTHON, "plain.py", options=["--slots", 2, "--slots-per-trial", 1])
        ports = (self.dir / "ports").read_text().split()
        self.assertEqual(len(set(ports)), len(ports), "a port was used twice")

    def test_variables_before_the_program(self):
        commands = self.tune("LEVEL=3", "PYTHONHASHSEED=1", *PYTHON, SCRIPT)
        for command in [*commands, (self.dir / "out/best_cmd.txt").read_text()]:
            self.assertIn("env LEVEL=3 PYTHONHASHSEED=1 ", command)

    def test_a_variable_that_names_the_configuration(self):
        # Lightning's strategy refuses a file with an accumulation.
        (self.dir / "light.py").write_text(
            "import json, os, sys, runpy\nfile = os.environ['PL_DEEPSPEED_CONFIG_PATH']\n"
            "assert 'gradient_accumulation_steps' not in json.load(open(file))\n"
            "sys.argv += ['--deepspeed_config', file]\nrunpy.run_path(%r, run_name='__main__')\n" % SCRIPT)
        os.environ["PL_DEEPSPEED_CONFIG_PATH"] = "ds_config.json"
        self.addCleanup(os.environ.pop, "PL_DEEPSPEED_CONFIG_PATH")
        for variable in ([], ["PL_DEEPSPEED_CONFIG_PATH=ds_config.json"]):
            self.tune(*variable, *PYTHON, "light.py", config=())
            line = (self.dir / "out/best_cmd.txt").read_text()
            self.assertIn("PL_DEEPSPEED_CONFIG_PATH=%s/out/best_ds_config.json" % self.dir, line)
            best = json.loads((self.dir / "out/best_ds_config.json").read_text())
            self.assertNotIn("gradient_accumulation_steps", best)
            shutil.rmtree(self.dir / "out")

    def test_abbreviations_of_the_launchers_options(self):
        commands = self.tune("torchrun", "--nproc_per=2", "--stand", SCRIPT, options=["--slots", 4])
        self.assertTrue(all("--nproc_per_node=2" in command for command in commands))

    def test_torchrun_starts_one_process_if_nobody_says_how_many(self):
        commands = self.tune("torchrun", SCRIPT, options=["--slots", 4])
        self.assertTrue(all("--nproc_per_node 1 " in command for command in commands))

    def test_a_flag_of_the_scripts_for_its_stage_follows(self):
        self.tune(*PYTHON, SCRIPT, "--zero-stage", 1, options=["-z", "2,3"])
        stages = set()
        for folder in (self.dir / "out/trials").iterdir():
            stage = json.loads((folder / "ds_config.json").read_text())["zero_optimization"]["stage"]
            self.assertIn("--zero-stage %d " % stage, (folder / "cmd.txt").read_text())
            stages.add(stage)
        self.assertTrue(stages & {2, 3})

    def test_a_module(self):
        self.tune(*PYTHON, "-m", "protocol_trial")


if __name__ == "__main__":
    unittest.main()
