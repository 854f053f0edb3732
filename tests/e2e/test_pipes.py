"""Files that a user names may be pipes, as a shell's <(COMMAND) is one: each is read once."""
import json
import os
import subprocess
import threading
import unittest

from support import CONFIG, HOST, PROJECT, HostTest


class Pipes(HostTest):
    def run_with_pipe(self, text, arguments, max_trials=2):
        """Runs dsat-host with the name of a pipe that gives `text` in place of each "PIPE"."""
        reader, writer = os.pipe()
        arguments = [argument.replace("PIPE", f"/dev/fd/{reader}") for argument in map(str, arguments)]

        def write():
            with os.fdopen(writer, "w") as stream:
                stream.write(text)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            return subprocess.run([HOST, "--output-dir", "study", "--max-trials", str(max_trials), *arguments],
                                  cwd=self.dir, capture_output=True, text=True, timeout=240, pass_fds=[reader])
        finally:
            os.close(reader)
            thread.join()

    def trial_command(self, config):
        return ["--", *self.command()[:-1], config]

    def test_the_commands_configuration(self):
        config = {**CONFIG, "gradient_clipping": 0.25, "padding": "x" * 200000}  # more than a pipe holds at once
        result = self.run_with_pipe(json.dumps(config), self.trial_command("PIPE"))
        self.assert_ok(result)
        trials = self.show("study")["trials"]
        self.assertEqual([trial["config"]["gradient_clipping"] for trial in trials], [0.25] * len(trials))

    def test_a_study_from_a_pipe_can_be_resumed(self):
        self.assert_ok(self.run_with_pipe(json.dumps(CONFIG), self.trial_command("PIPE")))
        again = subprocess.run([HOST, "resume", "study", "--max-trials", "4"],
                               cwd=self.dir, capture_output=True, text=True, timeout=240)
        self.assert_ok(again)
        self.assertGreater(len(self.show("study")["trials"]), 2)

    def test_its_errors_have_their_place(self):
        result = self.run_with_pipe('{\n "fp16": }', self.trial_command("PIPE"))
        self.assert_ok(result, 2)
        self.assertIn(":2:10: ", result.stderr)

    def test_an_empty_one_is_named(self):
        result = self.run_with_pipe("", self.trial_command("PIPE"))
        self.assert_ok(result, 2)
        self.assertIn("/dev/fd/", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_a_space_file(self):
        result = self.run_with_pipe('{"gradient_clipping": {"values": [0.5, 1.0]}}',
                                    ["--searcher", "grid", "-z", 0, "--max-micro-batch", 1, "--space", "PIPE",
                                     *self.trial_command("ds_config.json")], max_trials=16)
        self.assert_ok(result)
        tried = {trial["config"].get("gradient_clipping") for trial in self.show("study")["trials"]}
        self.assertLessEqual({0.5, 1.0}, tried)

    def test_a_hostfile(self):
        result = self.run_with_pipe("no-such-host slots=zero\n",
                                    ["--hostfile", "PIPE", *self.trial_command("ds_config.json")])
        self.assert_ok(result, 2)
        self.assertIn(":1: ", result.stderr)

    def test_a_scenario(self):
        scenario = (PROJECT / "examples/sim/1-gpu-gpt2-medium.json").read_text()
        self.assert_ok(self.run_with_pipe(scenario, ["--runner", "sim", "--sim", "PIPE"]))


if __name__ == "__main__":
    unittest.main()
