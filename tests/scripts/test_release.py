"""scripts/release: what it refuses before it builds anything."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("CMakeLists.txt", "sdk/python/pyproject.toml", "sdk/python/dsat/__init__.py",
          "trainer/include/dsat/trainer/trial.h", "CHANGELOG.md")


class Release(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-release-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        for name in (*PLACES, "scripts/release"):
            (self.dir / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.dir / name)
        # Instead of the builds.
        for name in ("wheel", "packages"):
            (self.dir / "scripts" / name).write_text(f"#!/bin/sh\n[ $1 = --out ] && shift\necho >$1/{name}-$VERSION\n")
            (self.dir / "scripts" / name).chmod(0o755)
        self.version = re.search(r"^project\(dsat VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.dir, check=True)

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-qm", "a")

    def release(self, out="../out"):
        return subprocess.run(["scripts/release", out], cwd=self.dir, capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "VERSION": self.version})

    def test_every_place_has_the_version(self):
        out = self.dir / "out"
        (self.dir / ".git/info/exclude").write_text("out\n")
        result = self.release("out")
        self.assertEqual(result.returncode, 0, result.stderr)
        sums = (out / "SHA256SUMS").read_text()
        for name in (f"wheel-{self.version}", f"packages-{self.version}", f"dsat-{self.version}-source.tar.gz"):
            self.assertIn(f"  ./{name}\n", sums)

    def test_one_that_differs_is_named(self):
        for place in PLACES[1:]:
            text = (self.dir / place).read_text()
            (self.dir / place).write_text(text.replace(self.version, "0.0.7"))
            self.commit()
            result = self.release()
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"{place} does not have the version {self.version}", result.stderr)
            (self.dir / place).write_text(text)

    def test_a_tree_with_changes_is_refused(self):
        (self.dir / "new").touch()
        result = self.release()
        self.assertEqual(result.returncode, 1)
        self.assertIn("the tree has changes", result.stderr)


if __name__ == "__main__":
    unittest.main()
