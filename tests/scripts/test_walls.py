"""scripts/check-walls on a small repository that crosses every wall: it must name each crossing and nothing else."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
LIBRARIES = ("host/src", "host/cli", "plugins", "trainer/src")  # each is one include root
PUBLIC = ("dsat", "dsat/base", "dsat/config", "dsat/cost", "dsat/host", "dsat/trainer")
TORCH = ("<torch/torch.h>", "<ATen/ATen.h>", "<c10/core/Device.h>", '"torch/csrc/autograd/variable.h"')


def read_table():
    """{folder or file: names that its own line gives}"""
    lines = [line for line in (SCRIPTS / "walls").read_text().splitlines() if line and not line.startswith("#")]
    return {place: names.split() for place, names in (line.split(":", 1) for line in lines)}


def library_of(place):
    return next((library for library in LIBRARIES if place.startswith(library + "/")), None)


def rooms_of(table, library):
    places = [place for place in table if library_of(place) == library and not place.endswith(".cc")]
    return [place[len(library) + 1:] for place in places]


class Repository:
    """A checkout of its own, with the scripts in it; nothing is committed, as in the middle of a change."""

    def __init__(self, test):
        folder = tempfile.TemporaryDirectory(prefix="walls-")
        test.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        (self.root / "scripts").mkdir()
        for name in ("check-walls", "walls"):
            shutil.copy(SCRIPTS / name, self.root / "scripts")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def add(self, path, *includes):
        self.write(path, "".join(f"#include {include}\n" for include in includes))

    def edit_table(self, old, new):
        table = self.root / "scripts/walls"
        text = table.read_text()
        if old not in text:
            raise AssertionError(f"scripts/walls has no {old!r}; this test wants another line to change")
        table.write_text(text.replace(old, new, 1))

    def check(self):
        return subprocess.run([self.root / "scripts/check-walls"], capture_output=True, text=True)

    def crossings(self):
        """{(file, included path): why}"""
        found = re.findall(r"^(\S+):\d+: includes (\S+): (.*)$", self.check().stdout, re.MULTILINE)
        return {(file, include): why for file, include, why in found}


class CheckWalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = read_table()
        # A file in every place that has a line; a line for a single file is that file.
        cls.files = {place: place if place.endswith(".cc") else f"{place}/probe.cc" for place in cls.table}

    def given(self, place):
        """What the lines of a place and of the folders around it give to it."""
        around = [line for line in self.table if (place + "/").startswith(line + "/")]
        return {name for line in around for name in self.table[line]}

    def expect(self, includes_of, allowed):
        """Writes a file with its includes in every place and compares what is named with what `allowed` leaves."""
        repository = Repository(self)
        expected = set()
        count = 0
        for place, file in self.files.items():
            includes = includes_of(place)
            repository.add(file, *includes)
            count += len(includes)
            bare = [include.strip('"<>') for include in includes]
            expected |= {(file, include) for include in bare if not allowed(place, include)}
        self.assertGreater(len(expected), 0)
        self.assertLess(len(expected), count, "nothing is allowed; the test would pass with a script that refuses all")
        self.assertEqual(set(repository.crossings()), expected)
        self.assertEqual(repository.check().returncode, 1)

    def test_every_room_and_every_other_room_of_its_library(self):
        def includes_of(place):
            rooms = rooms_of(self.table, library_of(place)) if library_of(place) else []
            return [f'"{room}/probe.h"' for room in rooms]

        def allowed(place, include):
            room = include.rsplit("/", 1)[0]
            return room in self.given(place) or place == f"{library_of(place)}/{room}"

        self.expect(includes_of, allowed)

    def test_every_room_and_the_public_headers_of_every_library(self):
        self.expect(lambda place: [f'"{folder}/probe.h"' for folder in PUBLIC],
                    lambda place, include: include.rsplit("/", 1)[0] in self.given(place))

    def test_libtorch_in_every_room(self):
        self.expect(lambda place: TORCH, lambda place, include: "<torch>" in self.given(place))

    def test_private_rooms_of_other_libraries(self):
        repository = Repository(self)
        expected = set()
        for place, file in self.files.items():
            own = rooms_of(self.table, library_of(place)) if library_of(place) else []
            others = {room for library in LIBRARIES if library != library_of(place)
                      for room in rooms_of(self.table, library)} - set(own)
            others = {room for room in others if not place.endswith("/" + room)}  # its own name, as in sdk/base
            repository.add(file, *(f'"{room}/probe.h"' for room in sorted(others)))
            expected |= {(file, f"{room}/probe.h") for room in others}
        self.assertEqual(set(repository.crossings()), expected)

    def test_a_tree_that_keeps_the_walls_passes_in_silence(self):
        repository = Repository(self)
        for place, file in self.files.items():
            names = [name for name in self.given(place) if name != "<torch>"]
            torch = ["<torch/torch.h>"] if "<torch>" in self.given(place) else []
            repository.add(file, "<vector>", "<nlohmann/json.hpp>", *torch, *(f'"{name}/probe.h"' for name in names))
        result = repository.check()
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_a_header_without_its_room_and_one_of_ours_in_angle_brackets(self):
        repository = Repository(self)
        repository.add("host/src/base/probe.cc", '"clock.h"', "<dsat/error.h>")
        crossings = repository.crossings()
        self.assertEqual(crossings["host/src/base/probe.cc", "clock.h"], "spell its room")
        self.assertEqual(crossings["host/src/base/probe.cc", "dsat/error.h"], "write our own headers in quotes")

    def test_a_folder_without_a_line(self):
        repository = Repository(self)
        repository.add("host/src/attic/probe.cc", '"attic/probe.h"')
        self.assertEqual(repository.crossings()["host/src/attic/probe.cc", "attic/probe.h"],
                         "host/src/attic has no line in scripts/walls")

    def test_a_table_with_a_circle(self):
        repository = Repository(self)
        repository.add("host/src/base/probe.cc", "<vector>")
        self.assertEqual(repository.check().returncode, 0)
        repository.edit_table("\nhost/src/base:", "\nhost/src/base: study/turn")
        result = repository.check()
        self.assertEqual(result.returncode, 1)
        self.assertIn("rooms of host/src include each other in a circle", result.stderr)

    def test_lines_of_more_than_120_characters(self):
        repository = Repository(self)
        repository.add("host/src/base/probe.cc", "<vector>")
        long = ("bench/long.py", "host/src/base/long.cc", "plugins/long.h", "tests/long.c", "docs/long.md")
        for path in long:
            repository.write(path, "x" * 120 + "\n" + "é" * 120 + "\n")  # characters, not bytes
        repository.write("docs/tables.md", "| " + "x" * 120 + "\n    dsat-host " + "x" * 120 + "\n")
        result = repository.check()
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        for path in long:
            repository.write(path, "x\n" + "x: " + "x" * 118 + "\n")
        result = repository.check()
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertEqual(result.stdout.splitlines(), [f"{path}:2: is longer than 120 characters" for path in long])

    def test_files_of_more_than_500_lines(self):
        repository = Repository(self)
        repository.add("host/src/base/probe.cc", "<vector>")
        repository.write(".gitignore", "/build/\n")
        repository.write("build/made.cc", "\n" * 501)
        repository.write("docs/long.md", "\n" * 501)
        long = ("bench/long.py", "examples/long.c", "sdk/base/long.h", "tests/host/long_test.cc")
        for path in long:
            repository.write(path, "x\n\n" * 250)
        result = repository.check()
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        subprocess.run(["git", "-C", repository.root, "add", long[0]], check=True)  # this one is tracked
        for path in long:
            repository.write(path, "x\n\n" * 250 + "the last line may end without a line break")
        result = repository.check()
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertEqual(result.stdout.splitlines(),
                         [f"{path}: has 501 lines, and a file has 500 at most" for path in long])


if __name__ == "__main__":
    unittest.main()
