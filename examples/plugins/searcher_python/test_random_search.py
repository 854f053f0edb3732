"""python3 -m unittest: dsat-host, which is in PATH, tries the searcher."""
import pathlib
import subprocess
import unittest

SEARCHER = pathlib.Path(__file__).resolve().with_name("random_search.py")


class RandomSearchTest(unittest.TestCase):
    def test_dsat_host_validates_it(self):
        result = subprocess.run(["dsat-host", "validate", str(SEARCHER)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
