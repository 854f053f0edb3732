"""abidiff, of libabigail, sees what a table of offsets does not: the parameters and the result of a callback."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parents[2]
TODAY = PROJECT / "sdk/include"
RELEASED = PROJECT / "tests/fixtures/abi"


class Abidiff(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-abi-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def library(self, include):
        """The ABI of the header in `include` as a shared library that has its debug information."""
        library = self.dir / f"lib{len(list(self.dir.glob('*.so')))}.so"
        subprocess.run(["cc", "-g", "-O0", "-fPIC", "-shared", "-I", str(include), "-o", str(library),
                        str(HERE / "surface.c")], check=True)
        return library

    def difference(self, old, new):
        """What abidiff reports; nothing where a plugin of the old header works with a host of the new one."""
        result = subprocess.run(
            ["abidiff", "--suppressions", str(HERE / "growth.ini"), str(old), str(new)], capture_output=True, text=True)
        self.assertEqual(result.returncode & 3, 0, result.stdout + result.stderr)  # 1 and 2: abidiff itself failed
        return result.stdout if result.returncode else ""

    def changed_header(self, text, replacement):
        header = (TODAY / "dsat/abi.h").read_text()
        self.assertEqual(header.count(text), 1, f"abi.h has not one `{text}`")
        include = self.dir / f"include{len(list(self.dir.glob('include*')))}"
        (include / "dsat").mkdir(parents=True)
        (include / "dsat/abi.h").write_text(header.replace(text, replacement))
        return include

    def test_every_released_header_is_that_of_today_but_for_growth(self):
        today = self.library(TODAY)
        for released in sorted(RELEASED.iterdir()):
            with self.subTest(released.name):
                self.assertEqual(self.difference(self.library(released), today), "")

    def test_a_change_that_no_offset_shows_is_found(self):
        released = self.library(RELEASED / "1.2")
        for text, replacement in [
                ("(*get_extension)(const dsat_host*, const char* id)",
                 "(*get_extension)(const dsat_host*, uint64_t id)"),
                ("(*on_result)(dsat_strategy*, const dsat_result*)", "(*on_result)(dsat_strategy*, const dsat_exit*)"),
                ("const dsat_descriptor* (*descriptor)(uint32_t index)", "dsat_status (*descriptor)(uint32_t index)")]:
            with self.subTest(replacement):
                changed = self.library(self.changed_header(text, replacement))
                self.assertIn("changed", self.difference(released, changed))
