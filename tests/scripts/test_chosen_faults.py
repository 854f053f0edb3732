"""bench/mutation/faults.json fits the sources: a fault whose text was rewritten is not put in, and proves nothing."""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/mutation"))
import mutants  # noqa: E402


class ChosenFaults(unittest.TestCase):
    def test_each_changes_one_place_of_the_sources(self):
        file = ROOT / "bench/mutation/faults.json"
        faults = list(mutants.faults(ROOT, file))
        self.assertEqual(len({fault.id for fault in faults}), len(json.loads(file.read_text())))
        for fault in faults:
            self.assertNotEqual(fault.replacement, (ROOT / fault.path).read_text()[fault.begin:fault.end], fault.id)
            for name in fault.tests:
                self.assertTrue((ROOT / f"tests/e2e/test_{name[4:]}.py").is_file(), f"{fault.id}: {name}")


if __name__ == "__main__":
    unittest.main()
