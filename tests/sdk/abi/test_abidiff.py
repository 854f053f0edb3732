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
GROWN = []  # the structs that have got members at their end since a release, say "dsat_exit"
GROWTH = """[suppress_type]
  type_kind = struct
  name_regexp = ^({})$
  has_data_member_inserted_at = end
  has_size_change = yes
"""


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

    def difference(self, old, new, grown=GROWN):
        """What abidiff reports; nothing where a plugin of the old header works with a host of the new one."""
        growth = self.dir / "growth.ini"
        growth.write_text(GROWTH.format("|".join(grown)))
        result = subprocess.run(
            ["abidiff", "--suppressions", str(growth), str(old), str(new)], capture_output=True, text=True)
        self.assertEqual(result.returncode & 3, 0, result.stdout + result.stderr)  # 1 and 2: abidiff itself failed
        return result.stdout if result.returncode else ""

    def changed_header(self, changes):
        header = (TODAY / "dsat/abi.h").read_text()
        for text, replacement in changes:
            self.assertEqual(header.count(text), 1, f"abi.h has not one `{text}`")
            header = header.replace(text, replacement)
        include = self.dir / f"include{len(list(self.dir.glob('include*')))}"
        (include / "dsat").mkdir(parents=True)
        (include / "dsat/abi.h").write_text(header)
        return include

    def test_every_released_header_is_that_of_today_but_for_growth(self):
        today = self.library(TODAY)
        for released in sorted(RELEASED.iterdir()):
            with self.subTest(released.name):
                self.assertEqual(self.difference(self.library(released), today), "")

    def test_a_member_is_added_at_the_end_of_a_struct_that_may_grow(self):
        released = self.library(RELEASED / "1.0")
        end = "dsat_exit, allocator_retries, 72"
        at_end = [("uint64_t allocator_retries;", "uint64_t allocator_retries; uint64_t more;"),
                  (end, "dsat_exit, more, 80")]
        before = [("uint64_t peak_bytes;", "uint64_t more; uint64_t peak_bytes;"),
                  (end, "dsat_exit, allocator_retries, 80")]
        for changes, grown, is_growth in [(at_end, ["dsat_exit"], True), (at_end, [], False),
                                          (before, ["dsat_exit"], False)]:
            with self.subTest(changes=changes, grown=grown):
                changed = self.library(self.changed_header(changes))
                self.assertEqual(self.difference(released, changed, grown) == "", is_growth)

    def test_a_change_that_no_offset_shows_is_found(self):
        released = self.library(RELEASED / "1.0")
        for text, replacement in [
                ("(*get_extension)(const dsat_host*, const char* id)",
                 "(*get_extension)(const dsat_host*, uint64_t id)"),
                ("(*on_result)(dsat_strategy*, const dsat_result*)", "(*on_result)(dsat_strategy*, const dsat_exit*)"),
                ("const dsat_descriptor* (*descriptor)(uint32_t index)", "dsat_status (*descriptor)(uint32_t index)")]:
            with self.subTest(replacement):
                changed = self.library(self.changed_header([(text, replacement)]))
                self.assertIn("changed", self.difference(released, changed))
