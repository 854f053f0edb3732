"""cmake/DsatGroups.cmake: which files of a target are compiled together, and what -DDSAT_ALONE changes."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
FILES = [f"{letter}.cc" for letter in "abcdefghijklmnopqr"]


class Groups(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="dsat-groups-"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "inner/src").mkdir(parents=True)
        for name in FILES:
            (self.root / "inner/src" / name).touch()
        (self.root / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(groups LANGUAGES CXX)\nset(CMAKE_UNITY_BUILD ON)\n"
            f"add_subdirectory(inner)\ninclude({PROJECT}/cmake/DsatGroups.cmake)\n")
        (self.root / "inner/CMakeLists.txt").write_text(
            f"add_library(letters STATIC {' '.join('src/' + name for name in FILES)})\n"
            "set_source_files_properties(src/b.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n")

    def configure(self, *alone):
        return subprocess.run(["cmake", "-G", "Ninja", "-S", self.root, "-B", self.root / "build",
                               "-DDSAT_ALONE=" + ";".join(alone)], capture_output=True, text=True, timeout=100)

    def groups(self, *alone):
        """The letters of each file that the build compiles of the target."""
        done = self.configure(*alone)
        self.assertEqual(done.returncode, 0, done.stderr)
        commands = subprocess.run(["ninja", "-C", self.root / "build", "-t", "commands", "inner/libletters.a"],
                                  capture_output=True, text=True, check=True, timeout=100).stdout
        compiled = [pathlib.Path(name) for name in re.findall(r" -c (\S+)", commands)]
        return sorted("".join(re.findall(r'#include ".*/(.)\.cc"', file.read_text())) if file.suffix == ".cxx" else
                      file.stem for file in compiled)

    def test_are_of_eight_in_the_order_of_the_list(self):
        self.assertEqual(self.groups(), ["acdefghi", "b", "jklmnopq", "r"])

    def test_a_file_left_alone_changes_no_other_group(self):
        self.assertEqual(self.groups("inner/src/d.cc"), ["acefghi", "b", "d", "jklmnopq", "r"])
        self.assertEqual(self.groups("inner/src/d.cc", "inner/src/q.cc"), ["acefghi", "b", "d", "jklmnop", "q", "r"])
        self.assertEqual(self.groups(), ["acdefghi", "b", "jklmnopq", "r"])

    def test_a_file_that_is_not_there_is_an_error_that_names_it(self):
        done = self.configure("inner/d.cc")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("DSAT_ALONE: there is no inner/d.cc", done.stderr)


if __name__ == "__main__":
    unittest.main()
