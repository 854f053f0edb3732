"""scripts/install-deps on a machine that dsat is not built on."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
IN_ITS_OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]


class InstallDeps(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-install-deps-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def install_on(self, system):
        """The result on such a system, where no package is installed and apt-get notes that it was called."""
        tried = subprocess.run([*IN_ITS_OWN_MOUNTS, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest("no mounts of one's own here: " + tried.stderr.strip())
        (self.dir / "os-release").write_text(system)
        for tool, does in (("dpkg-query", "exit 1"), ("apt-get", f"echo $* >>{self.dir}/called")):
            (self.dir / tool).write_text(f"#!/bin/sh\n{does}\n")
            (self.dir / tool).chmod(0o755)
        script = (f"mount --bind {self.dir}/os-release /etc/os-release\n"
                  f"PATH={self.dir}:$PATH {ROOT}/scripts/install-deps")
        return subprocess.run([*IN_ITS_OWN_MOUNTS, "sh", "-c", script], capture_output=True, text=True)

    def test_another_system_is_named_before_anything_is_fetched(self):
        for system, name in (('ID=ubuntu\nVERSION_ID="24.04"\n', "ubuntu 24.04"), ("ID=debian\n", "debian"),
                             ("ID=debian\nVERSION_ID=11\n", "debian 11"), ("", "unknown")):
            result = self.install_on(system)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"this system is {name}", result.stderr)
            self.assertFalse((self.dir / "called").exists())

    def test_debian_12_and_13_are_installed_on(self):
        for version in (12, 13):
            result = self.install_on(f'ID=debian\nVERSION_ID="{version}"\n')
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("g++", (self.dir / "called").read_text())
            (self.dir / "called").unlink()


if __name__ == "__main__":
    unittest.main()
