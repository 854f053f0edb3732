"""What bash, zsh and fish offer, and that man shows the page. A shell that is not there is left out."""
import shutil
import subprocess
import unittest

from support import HOST, HostTest

IN_BASH = """source <("$1" completion bash)
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_dsat_host
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(HostTest):
    def offered(self, *words):
        result = subprocess.run(["bash", "--norc", "-c", IN_BASH, "bash", HOST, *words], capture_output=True, text=True,
                                cwd=self.dir)
        self.assert_ok(result)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_sub_commands_and_options(self):
        self.assertIn("resume", self.offered("dsat-host", "res"))
        self.assertIn("--max-trials", self.offered("dsat-host", "--max-t"))
        self.assertIn("--max-trials", self.offered("dsat-host", "--json", "--max-t"))
        self.assertEqual(self.offered("dsat-host", "show", "--f"), ["--follow"])
        self.assertEqual(self.offered("dsat-host", "show", "--max-tr"), [])
        self.assertEqual(self.offered("dsat-host", "completion", "f"), ["fish"])

    def test_values(self):
        self.assertEqual(self.offered("dsat-host", "export", "d", "--format", "c"), ["csv"])
        self.assertEqual(self.offered("dsat-host", "new-plugin", "x", "--language", "c"), ["c", "c++"])
        (self.dir / "space.json").touch()
        self.assertEqual(self.offered("dsat-host", "--space", "sp"), ["space.json"])
        (self.dir / "results").mkdir()
        (self.dir / "results.txt").touch()
        self.assertEqual(self.offered("dsat-host", "best", "res"), ["results"])

    def test_the_users_own_command(self):
        (self.dir / "train.py").touch()
        self.assertIn("python3", self.offered("dsat-host", "--json", "--", "python"))
        self.assertEqual(self.offered("dsat-host", "--", "python3", "tr"), ["train.py"])

    def test_other_shells_take_theirs(self):
        for shell, arguments in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            if shutil.which(shell):
                (self.dir / shell).write_bytes(subprocess.run([HOST, "completion", shell], stdout=subprocess.PIPE,
                                                              check=True).stdout)
                result = subprocess.run([shell, *arguments, self.dir / shell], capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stderr), (0, ""), shell)

    @unittest.skipUnless(shutil.which("man"), "there is no man")
    def test_man_takes_the_page_without_a_warning(self):
        page = subprocess.run([HOST, "man"], stdout=subprocess.PIPE, check=True).stdout
        result = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertIn(b"--max-trials N", result.stdout)


if __name__ == "__main__":
    unittest.main()
