"""One study on every runner, on a real Slurm: the same decisions, the devices that a trial gets, its launchers."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import mini_slurm
from slurm_support import SMALL, SlurmTest, varied
from support import BUILD, FIXTURES, PROJECT

# Stands for ssh: HOST COMMAND. The trial's folder is shared, as it must be.
SSH = """#!/bin/sh
host=$1; shift
echo "$host" >>hosts-asked
exec sh -c "$*"
"""

# A training script of one rank: says what it sees, then follows the protocol.
WITNESS = r"""
import json, os, sys, subprocess
seen = {k: os.environ.get(k) for k in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                                       "CUDA_VISIBLE_DEVICES", "SLURMD_NODENAME")}
seen["argv"], seen["cpus"] = sys.argv[1:], sorted(os.sched_getaffinity(0))
folder = os.environ["DSAT_TRIAL_DIR"]
with open(os.path.join(folder, "seen-%s.json" % os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0"))), "w") as f:
    json.dump(seen, f)
"""


# Rank 1 fails; rank 0 would wait for it for ever.
RANK_FAILS = r"""
import os, sys, time
if os.environ["RANK"] == "1": sys.exit("RuntimeError: rank 1 gives up")
time.sleep(300)
"""


class Runners(SlurmTest):
    def witness(self, name, trial):
        folder = self.dir / name / "trials" / str(trial)
        return [json.loads(file.read_text()) for file in sorted(folder.glob("seen-*.json"))]

    def test_the_same_study_on_every_runner(self):
        # Only here it is known that there is no accelerator, without which this key is no axis.
        (self.dir / "space.json").write_text('{"zero_optimization.contiguous_gradients": [true]}')
        one = [*SMALL, "--max-concurrent-trials", "1", "--slots-per-trial", "1", "--space", "space.json"]
        self.tune("local", [*one, "--runner", "local", "--slots", "1"])
        self.tune("jobs", [*one, "--runner", "slurm"])
        self.tune("pilot", one, in_allocation=self.allocate("-N2", "--ntasks-per-node=4"))
        (self.dir / "fake-ssh").write_text(SSH)
        (self.dir / "fake-ssh").chmod(0o755)
        (self.dir / "hosts").write_text("alpha slots=1\nbeta slots=1\n")
        self.tune("prefix", [*one, "--runner-command", f"{self.dir}/fake-ssh {{host}}", "--hostfile", "hosts"])
        local = self.decisions("local")
        self.assertEqual(len(local), 6)
        for other in ("jobs", "pilot", "prefix"):
            self.assertEqual(self.decisions(other), local, other)
        self.assertEqual(set((self.dir / "hosts-asked").read_text().split()), {"alpha"})

    def test_a_resume_may_have_more_at_once(self):
        few = [*varied(SMALL, "--max-trials", "2"), "--slots-per-trial", "1"]
        self.tune("jobs", [*few, "--runner", "slurm", "--max-concurrent-trials", "1"], self.patient(1))
        self.tune("pilot", few, self.patient(1), self.allocate("-N1", "--ntasks-per-node=1"))
        for name, place in (("jobs", None), ("pilot", self.allocate("-N2", "--ntasks-per-node=4"))):
            with self.subTest(name):
                self.assert_ok(self.resume(name, "--searcher", "random", "--max-trials", "8",
                                           "--max-concurrent-trials", "4", in_allocation=place))
                later = [trial for trial in self.show(self.dir / name)["trials"][2:] if trial["started_at"]]
                at_once = max(sum(a["started_at"] <= b["started_at"] < a["ended_at"] for a in later) for b in later)
                self.assertGreater(at_once, 1)

    def test_a_pilot_packs_its_nodes_and_gives_each_trial_its_devices(self):
        allocation = self.allocate("-N2", "--ntasks-per-node=2", "--gres=gpu:2", "--cpus-per-task=2")
        (self.dir / "witness.py").write_text(WITNESS)
        process = self.start("run", varied(SMALL, "--searcher", "grid", "--max-trials", "8", "--slots-per-trial", "1"),
                             ["sh", "-c", f"{sys.executable} -S -E witness.py; exec \"$@\"", "sh",
                              *self.patient(0.3)], allocation)
        self.finish(process)
        self.assert_all_accounted("run")
        places = {(seen["SLURMD_NODENAME"], seen["CUDA_VISIBLE_DEVICES"])
                  for trial in self.trials("run") for seen in self.witness("run", trial)}
        self.assertLessEqual(places, {("n1", "0"), ("n1", "1"), ("n2", "0"), ("n2", "1")})
        self.assertGreaterEqual(len(places), 2)

    def test_parts_of_two_nodes_below_the_deepspeed_launcher_run_one_at_a_time(self):
        deepspeed = self.dir / "deepspeed"
        deepspeed.write_text("#!/bin/sh\nexit 1\n")
        deepspeed.chmod(0o755)
        command = [str(deepspeed), "train.py", "--deepspeed_config", "ds_config.json"]
        place = self.allocate("-N2", "--ntasks-per-node=2", "--gres=gpu:2")
        parts = self.run_slurm("parts", ["--num-nodes", "2", "--num-gpus", "1", "--max-trials", "1"], command, place)
        self.assertIn("run one at a time", parts.stdout + parts.stderr)
        whole = self.run_slurm("whole", ["--num-nodes", "2", "--num-gpus", "2", "--max-trials", "1"], command, place)
        self.assertNotIn("run one at a time", whole.stdout + whole.stderr)

    def test_a_step_with_more_slots_on_one_node_is_refused(self):
        place = self.allocate("-N2", "--gpus=3")
        uneven = self.run_slurm("uneven", ["--max-trials", "1"], in_allocation=place)
        self.assert_ok(uneven, 2)
        self.assertIn("give --num-nodes and --num-gpus", uneven.stderr)

    def test_a_trial_over_two_nodes_has_a_rank_for_every_slot(self):
        command = ["sh", "-c", f"{sys.executable} -S -E witness.py; exec \"$@\"", "sh", *self.command()]
        (self.dir / "witness.py").write_text(WITNESS)
        few = varied(SMALL, "--num-nodes", "2", "--num-gpus", "2", "--max-trials", "3", "--max-concurrent-trials", "1")
        self.tune("jobs", [*few, "--runner", "slurm"], command)
        self.tune("pilot", few, command, in_allocation=self.allocate("-N3", "--ntasks-per-node=2", "--gres=gpu:2"))
        for name in ("jobs", "pilot"):
            ranks = self.witness(name, 0)
            self.assertEqual([seen["RANK"] for seen in ranks], ["0", "1", "2", "3"], name)
            self.assertEqual([seen["LOCAL_RANK"] for seen in ranks], ["0", "1", "0", "1"])
            self.assertEqual({seen["WORLD_SIZE"] for seen in ranks}, {"4"})
            self.assertEqual(len({seen["SLURMD_NODENAME"] for seen in ranks}), 2)
            self.assertEqual({seen["CUDA_VISIBLE_DEVICES"] for seen in ranks}, {"0,1"})
            self.assertEqual(len({(seen["MASTER_ADDR"], seen["MASTER_PORT"]) for seen in ranks}), 1)
            self.assert_all_accounted(name)
        self.assertEqual(self.decisions("jobs"), self.decisions("pilot"))

    @unittest.skipUnless((BUILD / "dsat-trial").exists(), "built without the trainer")
    def test_the_native_trainer_runs_over_two_nodes(self):
        (self.dir / "dsat-trial").symlink_to(BUILD / "dsat-trial")
        shutil.copy(PROJECT / "examples/trials/gpt/ds_config.json", self.dir / "ds_config.json")
        command = ["./dsat-trial", "--model", "gpt", "--layers", "1", "--hidden", "32", "--heads", "2", "--seq", "16",
                   "--vocab", "64", "--deepspeed_config", "ds_config.json"]
        few = varied(SMALL, "--num-nodes", "2", "--num-gpus", "2", "--max-trials", "2", "--max-concurrent-trials", "1")
        self.tune("jobs", [*few, "--runner", "slurm", "--gres", "none"], command)
        self.tune("pilot", few, command, in_allocation=self.allocate("-N2", "--ntasks-per-node=2"))
        for name in ("jobs", "pilot"):
            trials = self.assert_all_accounted(name)
            self.assertEqual(trials[0]["metrics"]["world_size"], 4)
            self.assertEqual(len({slot.split(":")[0] for slot in trials[0]["slots"]}), 2)

    def started_once_a_node(self, launcher, *arguments):
        """What a launcher that is started on each node of the first trial has seen there."""
        (self.dir / launcher).write_text(f"#!/bin/sh\n{sys.executable} -S -E witness.py \"$@\"\n"
                                         f"while [ \"${{1%.py}}\" = \"$1\" ]; do shift; done\n"
                                         f"exec {sys.executable} -S -E \"$@\"\n")
        (self.dir / launcher).chmod(0o755)
        (self.dir / "witness.py").write_text(WITNESS)
        few = varied(SMALL, "--num-nodes", "2", "--num-gpus", "2", "--max-trials", "2", "--max-concurrent-trials", "1")
        command = [str(self.dir / launcher), *arguments, *self.command()[-3:]]
        self.tune("pilot", few, command, in_allocation=self.allocate("-N2", "--ntasks-per-node=2", "--gres=gpu:2"))
        nodes = self.witness("pilot", 0)
        self.assertEqual(len({seen["SLURMD_NODENAME"] for seen in nodes}), 2)
        return [seen["argv"] for seen in nodes]

    def test_one_torchrun_a_node(self):
        seen = self.started_once_a_node("torchrun", "--nproc_per_node", "2")
        self.assertEqual(len({argv[argv.index("--rdzv_endpoint") + 1] for argv in seen}), 1)

    def test_one_accelerate_a_node(self):
        seen = self.started_once_a_node("accelerate", "launch", "--use_deepspeed")
        for option, value in (("--num_machines", "2"), ("--num_processes", "4"), ("--gpu_ids", "all")):
            self.assertEqual({argv[argv.index(option) + 1] for argv in seen}, {value})
        self.assertEqual(len({argv[argv.index("--main_process_ip") + 1] for argv in seen} - {"{first_node}"}), 1)

    def test_a_rank_that_fails_ends_its_trial_and_the_others(self):
        (self.dir / "fails.py").write_text(RANK_FAILS)
        few = varied(SMALL, "--num-nodes", "2", "--num-gpus", "1", "--max-trials", "2", "--max-concurrent-trials", "1",
                     "--max-restarts", "0")
        command = [sys.executable, "-S", "-E", "fails.py", *self.command()[-2:]]
        self.run_slurm("pilot", few, command, self.allocate("-N2", "--ntasks-per-node=1"))
        trial = self.trials("pilot")[0]
        self.assertEqual(trial["outcome"], "failed", trial)
        self.assertIn("rank 1 gives up", trial["reason"])


class Binding(SlurmTest):
    """Where Slurm binds tasks to processors, as most clusters do."""

    conf = {"TaskPlugin": "task/affinity", "SlurmdParameters": None}
    cpus = os.cpu_count()

    def test_trials_that_share_a_node_are_not_pressed_onto_the_same_processor(self):
        (self.dir / "witness.py").write_text(WITNESS)
        command = ["sh", "-c", f"{sys.executable} -S -E witness.py && exec \"$@\"", "sh", *self.command()]
        few = varied(SMALL, "--max-trials", "2", "--max-concurrent-trials", "1")
        for name, slots in (("one", "1"), ("ranks", "2")):
            allocation = self.allocate("-N1", "--ntasks-per-node=2", f"--cpus-per-task={max(1, self.cpus // 2)}")
            self.tune(name, varied(few, "--slots-per-trial", slots), command, allocation)
            self.slurm.run("scancel", allocation["SLURM_JOB_ID"])
            seen = [json.loads(file.read_text()) for file in (self.dir / name).glob("trials/0/seen-*.json")]
            self.assertEqual([len(rank["cpus"]) for rank in seen], int(slots) * [self.cpus], name)


class ThePage(SlurmTest):
    """The commands of docs/slurm.md, as they stand there but for fewer trials."""

    def setUp(self):
        super().setUp()
        shutil.copy(FIXTURES / "protocol_trial.py", self.dir / "train.py")
        text = (PROJECT / "docs/slurm.md").read_text()
        blocks = re.findall(r"^ *```\n(.*?)^ *```", text, re.M | re.S)
        self.blocks = [re.sub("^   ", "", block, flags=re.M) for block in blocks]
        self.blocks = [block.replace("--output-dir run", "--output-dir run --max-trials 8") for block in self.blocks]
        environment = self.slurm.environment()
        self.variables = {**environment, "PATH": f"{BUILD}:{environment['PATH']}"}

    def test_in_an_allocation(self):
        (self.dir / "dsat.sh").write_text(self.blocks[0])
        sent = subprocess.run(["sbatch", "--parsable", "dsat.sh"],
                              cwd=self.dir, env=self.variables, capture_output=True, text=True)
        self.assert_ok(sent)
        job = sent.stdout.strip()
        mini_slurm.wait_until((self.dir / "run/dsat.db").exists, "the study begins")
        self.slurm.run("scontrol", "requeue", job)
        self.wait_for_end(job)
        self.assertTrue((self.dir / "run/best_ds_config.json").exists(), (self.dir / f"slurm-{job}.out").read_text())
        self.assertEqual(self.show("run")["study"]["runner"], "pilot")
        outcomes = {trial["outcome"] for trial in self.show("run")["trials"]}
        self.assertEqual(outcomes - {"completed", "out_of_memory"}, set())

    def wait_for_end(self, job):
        mini_slurm.wait_until(lambda: job in [found for found, _ in self.jobs("COMPLETED", "FAILED")],
                              "the job ends", 120)

    def test_one_job_a_trial(self):
        done = subprocess.run(["sh", "-c", self.blocks[1]],
                              cwd=self.dir, env=self.variables, capture_output=True, text=True, timeout=240)
        self.assert_ok(done)
        self.assertTrue((self.dir / "run/best_ds_config.json").exists())
