"""Hosts, slots and sizes, on a stand-in for the deepspeed launcher: whole placements, side by side, reported first."""
import json
import os
import shutil
import subprocess
import unittest

from support import CONFIG, FIXTURES, HOST, HostTest

TOOLS = FIXTURES / "bin"
SCRIPT = str(FIXTURES / "protocol_trial.py")


class Resources(HostTest):
    def setUp(self):
        super().setUp()
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        (self.bin / "deepspeed").symlink_to(TOOLS / "deepspeed")
        # ssh to anywhere ends here; w9 is switched off.
        self.program("ssh", 'while [ $# -gt 2 ]; do shift 2; done\n'
                            '[ "$1" != w9 ] || '
                            '{ echo "ssh: connect to host w9 port 22: No route to host" >&2; exit 255; }\n'
                            'exec /bin/sh -c "$2"\n')
        self.program("pdsh", "exit 1\n")
        (self.dir / "hosts").write_text("# uneven\nw1 slots=4\n\nw2 slots=2\nw3 slots=1\n")

    def program(self, name, text):
        (self.bin / name).write_text("#!/bin/sh\n" + text)
        (self.bin / name).chmod(0o755)

    def tune(self, options, *launcher, script=(), pass_fds=()):
        command = ["deepspeed", *map(str, launcher), SCRIPT, "--deepspeed_config", "ds_config.json", *map(str, script)]
        arguments = [HOST, "--output-dir", "out", "--max-trials", "6", *map(str, options), "--", *command]
        return subprocess.run(arguments, cwd=self.dir, capture_output=True, text=True, timeout=240, pass_fds=pass_fds,
                              env={"PATH": str(self.bin), "HOME": str(self.dir)})

    def trials(self):
        return [t for t in self.show(self.dir / "out")["trials"] if t["attempt"] > 0]

    def commands(self):
        return [(self.dir / "out/trials" / str(t["id"]) / "cmd.txt").read_text() for t in self.trials()]

    def refused(self, options, *launcher, words=()):
        result = self.tune(options, *launcher)
        self.assert_ok(result, 2)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertFalse((self.dir / "out").exists(), "something was run")
        for word in words:
            self.assertIn(word, result.stderr)

    # One machine

    def test_one_machine_needs_neither_ssh_nor_pdsh_nor_a_hostfile(self):
        (self.bin / "ssh").unlink()
        (self.bin / "pdsh").unlink()
        self.assert_ok(self.tune([], "--num_gpus", 2))
        for command in self.commands():
            self.assertNotIn("DS_ENV_FILE", command)
            self.assertIn("--include localhost:0,1", command)
            self.assertNotIn("--hostfile", command)

    def test_slots_that_the_command_includes_are_the_pool_and_the_trial(self):
        self.assert_ok(self.tune(["--slots", 4], "--include", "localhost:1,3"))
        self.assertEqual({tuple(t["slots"]) for t in self.trials()}, {("1", "3")})
        self.assertEqual({t["config"]["train_batch_size"] // t["config"]["train_micro_batch_size_per_gpu"]
                          for t in self.trials()}, {2})

    def test_slots_that_nobody_found_cannot_be_included(self):
        self.refused([], "--include", "localhost:7", words=["slot '7' of localhost", "no accelerator was found"])

    # Several hosts

    def test_trials_have_whole_placements_on_uneven_hosts_and_what_stays_idle_is_named(self):
        result = self.tune(["--hostfile", "hosts", "--num-nodes", 1, "--num_gpus", 2])
        self.assert_ok(result)
        for trial, command in zip(self.trials(), self.commands()):
            variables = self.dir.resolve() / "out/trials" / str(trial["id"]) / "deepspeed_env"
            self.assertIn(f"DS_ENV_FILE={variables} ", command)
            self.assertIn(f"DSAT_TRIAL_ID={trial['id']}", variables.read_text().splitlines())
        self.assertIn("w2:0,1 | w1:0,1 | w1:2,3", result.stdout)
        self.assertIn("warning: w3:0 stays idle", result.stdout)
        for trial, command in zip(self.trials(), self.commands()):
            host = trial["slots"][0].split(":")[0]
            self.assertEqual([slot.split(":")[0] for slot in trial["slots"]], [host, host])
            self.assertIn("--hostfile %s" % (self.dir / "hosts"), command)
            self.assertIn("--include %s:" % host, command)
            self.assertIn("--force_multi", command)
        self.assertIn("--num_gpus 2 --num_nodes 1", (self.dir / "out/best_cmd.txt").read_text())

    def test_by_default_a_trial_takes_every_slot_of_every_host(self):
        self.assert_ok(self.tune([], "--hostfile", "hosts"))
        for command in self.commands():
            self.assertIn("--include w1:0,1,2,3@w2:0,1@w3:0", command)

    def test_a_hostfile_from_a_pipe_is_kept_for_trials_and_the_best_command(self):
        for option in (True, False):
            reader, writer = os.pipe()
            os.write(writer, (self.dir / "hosts").read_bytes())
            os.close(writer)
            name = ["--hostfile", "/dev/fd/%d" % reader]
            result = self.tune(name if option else [], *([] if option else name), pass_fds=[reader])
            os.close(reader)
            self.assert_ok(result)
            kept = self.dir / "out/dsat.hostfile"
            self.assertEqual(kept.read_text(), (self.dir / "hosts").read_text())
            for command in [*self.commands(), (self.dir / "out/best_cmd.txt").read_text()]:
                self.assertIn("--hostfile %s " % kept, command)
                self.assertNotIn("/dev/fd", command)
            shutil.rmtree(self.dir / "out")

    def test_a_hostfile_of_the_launcher_that_is_none_means_this_machine(self):
        for name, words in (("/dev/null", ""), ("nowhere", "/nowhere of the command")):
            result = self.tune(["--slots", 2], "--hostfile", name, "--num_gpus", 2)
            self.assert_ok(result)
            self.assertIn(words, result.stdout)
            for command in self.commands():
                self.assertIn("--include localhost:0,1", command)
                self.assertNotIn("--hostfile", command)
            shutil.rmtree(self.dir / "out")

    def test_below_mpi_a_trial_takes_whole_hosts(self):
        begin = ["--hostfile", "hosts"]
        for launcher, options, words in (
                ("openmpi", ["--num-nodes", 1, "--num-gpus", 2], ["openmpi", "2 of the 4 slots of w1"]),
                ("mpich", ["--include", "w1:1,2@w2"], ["w1:1 is left"]),
                ("slurm", ["--num-nodes", 1, "--num-gpus", 4], ["a trial takes 4 slots of 7"])):
            self.refused([*begin, *options], "--launcher", launcher, words=words)

    def test_hosts_of_other_users_are_named_by_a_hostfile_since_include_cannot(self):
        (self.dir / "hosts").write_text("ann@w1 slots=2\nann@w2 slots=2\n")
        self.refused(["--hostfile", "hosts", "--num-nodes", 1, "--num-gpus", 1],
                     words=["cannot name USER@HOST", "1 of the 2 slots of ann@w1", "~/.ssh/config"])
        self.assert_ok(self.tune(["--hostfile", "hosts", "--num-nodes", 1, "--num-gpus", 2]))
        best = (self.dir / "out/best_cmd.txt").read_text()
        self.assertIn("--hostfile %s " % (self.dir / "out/best_hostfile"), best)
        for trial, command in zip(self.trials(), self.commands()):
            folder = self.dir.resolve() / "out/trials" / str(trial["id"])
            host = trial["slots"][0].rpartition(":")[0]
            self.assertEqual((folder / "hostfile").read_text(), host + " slots=2\n")
            self.assertIn("--hostfile %s " % (folder / "hostfile"), command)
        for command in [*self.commands(), best]:
            self.assertNotIn("--include", command)

    def test_bad_hosts_are_refused_before_anything_runs(self):
        for text, words in (("w1 slots=4\nw2 slots=2\nw1 slots=1\n", ["hosts:3: host w1 is on line 1"]),
                            ("w1 slots=0\n", ["hosts:1: w1 has slots=0"]), ("w1 slots=4\nw2\n", ["hosts:2: 'w2'"]),
                            ("w1 slots=4\nw9 slots=4\n", ["hosts:2: host w9 cannot be reached", "No route to host"]),
                            ("\n", ["names no host"])):
            (self.dir / "hosts").write_text(text)
            self.refused(["--hostfile", "hosts"], words=words)
        (self.dir / "hosts").write_text("w1 slots=4\nw2 slots=4\n")
        self.refused(["--hostfile", "hosts", "--runner-command", "ssh"],
                     words=["--runner-command ssh", "{host}"])
        self.refused(["--hostfile", "none"], words=["hostfile", "none"])

    def test_bad_filters_and_sizes_are_refused(self):
        hostfile = ["--hostfile", "hosts"]
        for options, word in ((["--include", "w7"], "'w7', which is unknown"),
                              (["--include", "w2:0,5"], "slot '5' of w2"),
                              (["--include", "w2", "--exclude", "w1"], "both given"),
                              (["--include", "w2:"], "'w2:' names no nodes"),
                              (["--exclude", "w1@w2@w3"], "leaves no slot"),
                              (["--num-gpus", 5], "num_gpus 5"), (["--num-nodes", 4], "num_nodes is 4"),
                              (["--num-gpus", "2,x"], "'2,x' is no number"), (["--slots", 3], "keep one"),
                              (["--slots-per-trial", 2, "--num-gpus", 2], "keep one")):
            self.refused([*hostfile, *options], words=[word])
        self.refused(hostfile, "--hostfile", "hosts", words=["--hostfile is given to dsat-host"])
        self.refused(["--include", "localhost:0"], "--include", "localhost:1",
                     words=["--include is given to dsat-host"])

    def test_a_missing_tool_is_named_before_the_first_trial(self):
        (self.bin / "pdsh").unlink()
        self.refused(["--hostfile", "hosts"], words=["pdsh, which is not in PATH"])

    # Sizes that are searched

    def test_num_gpus_as_a_list_is_tuned_and_batch_sizes_follow(self):
        self.write_config({**CONFIG, "autotuning": {"enabled": True, "num_gpus": [2, 4]}})
        self.assert_ok(self.tune(["--metric", "throughput", "-z", 1]))
        sizes = set()
        for trial, command in zip(self.trials(), self.commands()):
            config = trial["config"]
            gpus = config["autotuning"]["num_gpus"]
            sizes.add(gpus)
            self.assertEqual(len(trial["slots"]), gpus)
            self.assertEqual(config["train_batch_size"], config["train_micro_batch_size_per_gpu"] * gpus)
            self.assertIn("--include localhost:" + ",".join(trial["slots"]), command)
        self.assertEqual(sizes, {2, 4})
        best = json.loads((self.dir / "out/best_ds_config.json").read_text())
        self.assertNotIn("autotuning", best)
        command = (self.dir / "out/best_cmd.txt").read_text()
        world = best["train_batch_size"] // best["train_micro_batch_size_per_gpu"]
        self.assertIn("--num_gpus %d " % world, command)
        run = subprocess.run(command, shell=True, cwd=self.dir, capture_output=True, text=True, timeout=60,
                             env={**os.environ, "PATH": "%s:%s" % (self.bin, os.environ["PATH"])})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("rank 0 of %d" % world, run.stdout)


if __name__ == "__main__":
    unittest.main()
