"""Comments and names are in plain words: data are reported, delivered, read or logged; no sentence begins with "Of"."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("sdk", "host", "plugins", "trainer", "web", "bench", "examples", "tests")
SUFFIXES = (".h", ".c", ".cc", ".py", ".js")
LEFT_OUT = (pathlib.Path(__file__), ROOT / "tests/fixtures/abi")  # the latter: headers as they were released
WORDS = re.compile(r"(?<![A-Za-z])(?i:told|said|hears?|heard)(?![A-Za-z])|[a-z](?:Told|Said|Hears?|Heard)(?![a-z])")
BEGINS_WITH_OF = re.compile(r"^\s*(?://|#|\*|/\*)?\s*Of (?!allocated|of\b)|[.!?] Of (?!the allocated memory)[a-z]")


def sources():
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*")):
            is_ours = "node_modules" not in file.parts and not any(file.is_relative_to(out) for out in LEFT_OUT)
            if file.suffix in SUFFIXES and is_ours:
                yield file


class PlainWords(unittest.TestCase):
    def assert_nowhere(self, pattern, what):
        found = []
        for file in sources():
            lines = file.read_text(errors="replace").splitlines()
            found += [f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
                      for number, line in enumerate(lines, 1) if pattern.search(line)]
        self.assertEqual(found, [], what)

    def test_data_have_no_voice(self):
        self.assert_nowhere(WORDS, "told, said, heard: say what is done with the data")

    def test_no_sentence_begins_with_of(self):
        self.assert_nowhere(BEGINS_WITH_OF, "begin with what it is")


if __name__ == "__main__":
    unittest.main()
