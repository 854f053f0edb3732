"""What is here of Determined's dsat: each row of the lists of features and behaviours names tests, and they exist."""
import ast
import pathlib
import re
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LISTS = PROJECT / "tests/scripts/determined_features.txt"
FEATURES = "# Features of Determined's dsat"
BEHAVIOURS = "# Behaviours that Determined's own tests"
FAULTS = "# Faults of Determined's dsat"


def rows_of(heading):
    section = LISTS.read_text().split("\n" + heading, 1)[1].split("\n# ", 1)[0]
    return [[cell.strip() for cell in line.split("|")] for line in section.splitlines()[1:] if line]


def python_names(folders):
    """module.Class and module.Class.test of all test modules."""
    names = set()
    for folder in folders:
        for path in (PROJECT / folder).glob("*.py"):
            for kind in ast.parse(path.read_text()).body:
                if isinstance(kind, ast.ClassDef):
                    names.add(f"{path.stem}.{kind.name}")
                    names.update(f"{path.stem}.{kind.name}.{part.name}" for part in kind.body
                                 if isinstance(part, ast.FunctionDef))
    return names


def cpp_names():
    """Suite and Suite.Test of all GoogleTest files; Each/Suite of those with parameters."""
    names = set()
    for path in (PROJECT / "tests").rglob("*.cc"):
        for form, suite, test in re.findall(r"^TEST(_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.M):
            names.update((suite, f"{suite}.{test}"))
            if form == "_P":
                names.add(f"Each/{suite}")
    return names


class TheLists(unittest.TestCase):
    def test_each_row_names_tests_that_exist(self):
        known = python_names(("tests/python", "tests/e2e")) | cpp_names()
        for rows in (rows_of(FEATURES), rows_of(BEHAVIOURS), rows_of(FAULTS)):
            self.assertGreater(len(rows), 5)
            for row in rows:
                named = re.findall(r"[\w/.]+", re.sub(r"\(.*?\)", "", row[-1]))
                with self.subTest(row[0]):
                    self.assertTrue(named, "no test is named")
                    self.assertEqual([name for name in named if name not in known], [])

    def test_each_feature_is_whole_or_refused_by_name(self):
        rows = rows_of(FEATURES)
        self.assertGreaterEqual(len(rows), 76)
        for feature, state, _ in rows:
            with self.subTest(feature):
                self.assertRegex(state, r"whole|refused: \w|SIGTERM|says so|kept, named as without effect")


if __name__ == "__main__":
    unittest.main()
