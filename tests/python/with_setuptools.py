"""The package installs: the wheel that pip would make holds it whole, with its types and the project's version."""
import os
import re
import shutil
import subprocess
import sys
import unittest
import zipfile

from support import PACKAGE, PackageTest

BUILD_WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


class Wheel(PackageTest):
    def test_it_holds_the_package_and_its_types(self):
        source = shutil.copytree(PACKAGE, self.dir / "source", ignore=shutil.ignore_patterns("*.egg-info", "build"))
        subprocess.run([sys.executable, "-c", BUILD_WHEEL, str(self.dir)], cwd=source, check=True, capture_output=True)
        (wheel,) = self.dir.glob("*.whl")
        self.assertRegex(wheel.name, r"^dsat-[0-9.]+-py3-none-any\.whl$")
        packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("dsat/")}
        self.assertEqual(packed, {"dsat/" + name for name in os.listdir(PACKAGE / "dsat") if name != "__pycache__"})
        self.assertIn("dsat/py.typed", packed)

    def test_its_version_is_the_projects(self):
        def version(path, pattern):
            return re.search(pattern, (PACKAGE / path).read_text()).group(1)

        project = version("../../CMakeLists.txt", r"project\(dsat VERSION ([0-9.]+)")
        self.assertEqual(version("pyproject.toml", r'version = "([0-9.]+)"'), project)
        self.assertEqual(version("dsat/__init__.py", r'__version__ = "([0-9.]+)"'), project)


if __name__ == "__main__":
    unittest.main()
