"""Every command line of dsat-host in README.md and docs/ is run as it stands there: DIR is a study, `deepspeed` a
launcher of the fixtures, train.py a script that follows the protocol. Those that need more are run by other tests."""
import re
import shlex
import shutil
import signal
import subprocess
import unittest

from support import BUILD, FIXTURES, HOST, PROJECT, HostTest

SIM = ["--runner", "sim", "--sim", str(PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"), "--max-trials", "20"]
# What a line begins with: where it is run.
ELSEWHERE = {
    "dsat-host --runner slurm": "test_slurm_runners.py",
    "dsat-host --searcher asha -- dsat-trial --trial": "test_trial_api.py",
    "dsat-host --runner-command": "test_launchers.py and the tests of host/src/prefix",
    "dsat-host validate build/plugins/libclimb.so": "test_install.py",
    "dsat-host --searcher build/plugins/libclimb.so": "test_install.py",
    "dsat-host --autotuning": "test_deepspeed_form.py",
    "dsat-host --space space.json": "test_frameworks.py",
}
FEW = ["--max-trials", "3", "--profile-trials", "1", "--no-baseline", "--finals", "0"]


def command_lines(page):
    """The lines of code blocks that call dsat-host, without their comments."""
    text = page.read_text().replace("\\\n", " ")
    code = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S) + re.findall(r"^(    \S.*)$", text, re.M)
    for line in "\n".join(code).splitlines():
        line = re.sub(r"\s+", " ", line.strip().replace("DIR/bin/dsat-host", "dsat-host"))
        if re.match("dsat-host [a-z-]", line):
            yield re.sub(r"\s#\s.*", "", line)


class Documents(HostTest):
    def setUp(self):
        super().setUp()
        shutil.copy(FIXTURES / "protocol_trial.py", self.dir / "train.py")
        (self.dir / "examples").symlink_to(PROJECT / "examples")
        self.path = {"PATH": f"{BUILD}:{FIXTURES / 'bin'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.dir)}
        self.study("DIR")
        trials = self.run_line("dsat-host show DIR --csv")
        self.assert_ok(trials)
        (self.dir / "trace.csv").write_text(trials.stdout)

    def study(self, name):
        self.assert_ok(subprocess.run([HOST, *SIM, "--output-dir", name, "--quiet"], cwd=self.dir,
                                      capture_output=True, text=True))

    def run_line(self, line):
        return subprocess.run(["bash", "-c", line], cwd=self.dir, capture_output=True, text=True, env=self.path,
                              timeout=240)

    def run_as_written(self, line):
        if line.startswith("dsat-host serve"):
            return self.serve(line)
        line = line.replace(" [-o FILE]", "").replace("DIR...", "DIR").replace("<your training command>",
                                                                               "python3 train.py --deepspeed_config "
                                                                               "ds_config.json")
        if not shutil.which("man"):
            line = line.replace(" | man -l -", "")
        words = shlex.split(line)
        if words[1] == "resume":
            line += " --max-trials 22"
        elif "--" in words:
            line = line.replace("dsat-host ", f"dsat-host {shlex.join(FEW)} ", 1)
        elif "--sim" in words:
            line += " --max-trials 8"
        result = self.run_line(line)
        shutil.rmtree(self.dir / "dsat-results", ignore_errors=True)
        self.assert_ok(result)

    def serve(self, line):
        process = subprocess.Popen(["bash", "-c", "exec " + line.replace("...", "")], cwd=self.dir, env=self.path,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("http://127.0.0.1:", process.stdout.readline())
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)

    def test_every_command_line_works(self):
        pages = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
        ran = 0
        for page in pages:
            for line in command_lines(page):
                if any(line.startswith(begin) for begin in ELSEWHERE):
                    continue
                with self.subTest(page=page.name, line=line):
                    self.run_as_written(line)
                    ran += 1
        self.assertGreater(ran, 15)


if __name__ == "__main__":
    unittest.main()
