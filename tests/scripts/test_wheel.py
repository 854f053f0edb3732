"""scripts/wheel: what it lets into a wheel, what a wheel holds, and that the same files give the same bits."""
import base64
import csv
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["DSAT_BUILD_DIR"])


def wheel_script():
    loader = importlib.machinery.SourceFileLoader("wheel_script", str(ROOT / "scripts/wheel"))
    spec = importlib.util.spec_from_loader("wheel_script", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


WHEEL = wheel_script()


class Needs(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-wheel-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def compiled(self, source, *options):
        program = self.dir / "program"
        subprocess.run(["cc", "-x", "c", "-", "-o", program, *options], input=source, text=True, check=True)
        return program

    def test_the_c_library_alone_is_taken(self):
        WHEEL.check_needs(self.compiled("int main(void) { return 0; }"))

    def test_another_library_is_named(self):
        program = self.compiled("int main(void) { return 0; }", "-Wl,--no-as-needed", "-lz")
        with self.assertRaisesRegex(SystemExit, "program needs libz.so.1: link it in"):
            WHEEL.check_needs(program)

    def test_a_newer_c_library_is_named(self):
        source = "int pidfd_open(int pid, unsigned flags);\nint main(void) { return pidfd_open(1, 0); }"
        with self.assertRaisesRegex(SystemExit, "program needs pidfd_open of glibc 2.36"):
            WHEEL.check_needs(self.compiled(source))

    @unittest.skipIf(tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))) > (2, 36),
                     "the C library here is newer than Debian 12's: what is built on it needs newer symbols")
    def test_our_programs_need_no_newer_one(self):
        for program in [BUILD / "dsat-host", BUILD / "dsat-launch", BUILD / "dsat-plugin-host",
                        *(BUILD / "plugins").glob("*.so")]:
            try:
                WHEEL.check_needs(program)
            except SystemExit as refusal:  # they are linked with shared libraries here
                self.assertNotIn("glibc", str(refusal))


class Archives(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-wheel-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        stage = self.dir / "stage"
        for name, mode in (("bin/dsat-host", 0o755), ("libexec/dsat/dsat-launch", 0o755),
                           ("lib/dsat/plugins/libasha.so", 0o644), ("share/dsat/python/dsat/__init__.py", 0o644)):
            path = stage / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            path.chmod(mode)
        self.files = []
        for number in range(2):
            wheel, tarball = self.dir / f"{number}.whl", self.dir / f"{number}.tar.gz"
            WHEEL.write_wheel(wheel, stage, "1.2.3", (2026, 1, 2, 3, 4, 6))
            WHEEL.write_tarball(tarball, stage, "1.2.3", 1767323046)
            self.files.append((wheel, tarball))

    def test_the_same_files_are_the_same_bits(self):
        for one, other in zip(*self.files):
            self.assertEqual(one.read_bytes(), other.read_bytes())

    def test_the_record_has_every_file(self):
        with zipfile.ZipFile(self.files[0][0]) as wheel:
            names = wheel.namelist()
            rows = list(csv.reader(wheel.read("dsat-1.2.3.dist-info/RECORD").decode().splitlines()))
            self.assertEqual([row[0] for row in rows], names)
            for name, digest, size in rows[:-1]:
                content = wheel.read(name)
                wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), ("sha256=" + wanted, len(content)))
            for name in ("dsat/_study.py", "dsat-1.2.3.data/scripts/dsat-host", "dsat-1.2.3.dist-info/licenses/LICENSE",
                         "dsat-1.2.3.data/data/lib/dsat/plugins/libasha.so"):
                self.assertIn(name, names)
            mode = wheel.getinfo("dsat-1.2.3.data/data/libexec/dsat/dsat-launch").external_attr >> 16
            self.assertEqual(mode & 0o777, 0o755)

    @unittest.skipUnless(importlib.util.find_spec("pip"), "this Python has no pip")
    def test_pip_refuses_it_on_another_processor_and_with_an_older_c_library(self):
        wheel = shutil.copy(self.files[0][0], self.dir / f"dsat-1.2.3-{WHEEL.tag()}.whl")
        for platform, is_taken in (("manylinux_2_34_x86_64", True), ("manylinux_2_31_x86_64", False),
                                   ("manylinux_2_34_aarch64", False)):
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--only-binary=:all:",
                                   "--platform", platform, "--target", self.dir / platform, wheel],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, is_taken, done.stderr)
            if not is_taken:
                self.assertIn("not a supported wheel on this platform", done.stderr)

    def test_the_tarball_runs_from_any_folder(self):
        with tarfile.open(self.files[0][1]) as archive:
            self.assertEqual(archive.getmember("dsat-1.2.3/bin/dsat-host").mode, 0o755)
            self.assertIn("dsat-1.2.3/share/doc/dsat/LICENSE", archive.getnames())


if __name__ == "__main__":
    unittest.main()
