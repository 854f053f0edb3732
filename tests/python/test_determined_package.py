"""The stand-in for the package determined: names that it does not have, and the real package beside it."""
import os
import shutil
import subprocess
import sys

from determined_support import DeterminedTest
from support import PACKAGE

import determined as det
from determined import core


class WhatIsNotThere(DeterminedTest):
    def test_it_is_refused_by_name_with_the_reason(self):
        for statement, words in (("import determined.keras", "has no determined.keras: TensorFlow"),
                                 ("from determined.experimental import client",
                                  "has no determined.experimental: .*master"),
                                 ("import determined.lightning", "has no determined.lightning: its Trainer"),
                                 ("import determined.horovod", "has no determined.horovod: Horovod"),
                                 ("import determined.tensorboard.metric_writers.pytorch",
                                  "has no determined.tensorboard: .*get_tensorboard_writer"),
                                 ("import determined.searcher", "has no determined.searcher: .*searcher plugin"),
                                 ("from determined.core import Foo", "has no determined.core.Foo: docs/migrate"),
                                 ("import determined.nonsense", "has no determined.nonsense: docs/migrate")):
            with self.subTest(statement), self.assertRaisesRegex(ImportError, words):
                exec(statement)
        with self.assertRaisesRegex(AttributeError, "has no determined.submit"):
            det.submit()
        self.assertFalse(hasattr(det, "submit"))
        with core.init() as context:
            for part, name in ((context, "Context"), (context.train, "TrainContext"),
                               (context.searcher, "SearcherContext"), (context.checkpoint, "CheckpointContext"),
                               (context.preempt, "PreemptContext")):
                with self.subTest(name), self.assertRaisesRegex(AttributeError, f"has no {name}.submit: docs/migrate"):
                    part.submit()

    def test_import_from_path_forgets_what_it_imported(self):
        (self.dir / "code").mkdir()
        (self.dir / "code" / "of_a_checkpoint.py").write_text("x = 3\n")
        with det.import_from_path(self.dir / "code"):
            import of_a_checkpoint
            self.assertEqual(of_a_checkpoint.x, 3)
        self.assertNotIn("of_a_checkpoint", sys.modules)


class TheRealPackage(DeterminedTest):
    def setUp(self):
        super().setUp()
        real = self.dir / "site" / "determined"
        real.mkdir(parents=True)
        (real / "__init__.py").write_text("name = 'real'\ndef get_cluster_info():\n    return None\n")
        (real / "part.py").write_text("x = 1\n")

    def run_with(self, path, script):
        result = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, timeout=60,
                                env=dict(os.environ, PYTHONPATH=f"{PACKAGE}:{path}"))
        return result.stdout.strip(), result.stderr

    def test_within_an_experiment_the_stand_in_stays(self):
        self.begin_experiment({"lr": 3})
        script = "import determined\nprint(determined.get_cluster_info().trial.hparams['lr'])\n"
        self.assertEqual(self.run_with(self.dir / "site", script), ("3", ""))

    def test_it_takes_the_stand_ins_place(self):
        (self.dir / "empty" / "determined").mkdir(parents=True)  # a folder of that name is no package
        (self.dir / "copy").mkdir()
        for name in ("determined", "dsat"):  # of another installation; two of them do not give way to each other
            shutil.copytree(PACKAGE / name, self.dir / "copy" / name)
        behind_a_copy = f"{self.dir / 'copy'}:{self.dir / 'site'}"
        for path, expected in ((self.dir / "site", "real"), (self.dir / "empty", "stand-in"),
                               (self.dir / "copy", "stand-in"), (behind_a_copy, "real")):
            with self.subTest(expected):
                script = ("import determined\nname = getattr(determined, 'name', 'stand-in')\nprint(name)\n"
                          "if name == 'real':\n    from determined.part import x\n")
                self.assertEqual(self.run_with(path, script), (expected, ""))
