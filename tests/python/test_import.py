"""Importing the package: whatever is installed beside it is left alone, broken or not."""
import os
import subprocess
import sys
import unittest

from support import PACKAGE, PackageTest


class Import(PackageTest):
    def test_nothing_that_is_installed_is_imported(self):
        for name in ("torch", "deepspeed", "transformers", "mlflow", "numpy", "yaml"):
            self.write(name + ".py", "raise RuntimeError('imported')\n")
        environment = {**os.environ, "PYTHONPATH": f"{self.dir}:{PACKAGE}", "MLFLOW_TRACKING_URI": "file:///nowhere"}
        program = "import dsat; dsat.report({'latency': 1}); dsat.StepTimer().step(); print(len(dsat.__all__))"
        result = subprocess.run([sys.executable, "-S", "-W", "error", "-c", program],
                                env=environment, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
