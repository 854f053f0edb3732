"""What the tests of trial classes share: a plain trial class, and the training of one.
Wants torch; on the stand-ins."""
import json
import os
import pathlib
import sys

from support import PackageTest

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
sys.path.insert(0, str(FIXTURES / "packages"))

import torch  # noqa: E402
import deepspeed  # noqa: E402

from determined import pytorch  # noqa: E402
from determined.errors import InvalidExperimentException  # noqa: E402
from determined.exec import harness  # noqa: E402
from determined.pytorch import deepspeed as det_ds  # noqa: E402

CONFIG = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4}  # two micro batches a batch


class Line(torch.utils.data.Dataset):
    def __init__(self, length=32):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        x = torch.tensor([index / self.length])
        return x, 2 * x + 1


class LineTrial(det_ds.DeepSpeedTrial):
    """The plainest trial class; the tests change parts of it."""

    callbacks = {}

    def __init__(self, context):
        self.context = context
        self.loss = torch.nn.MSELoss()
        model = torch.nn.Linear(1, 1)
        self.engine, _, _, _ = deepspeed.initialize(model=model, config=dict(CONFIG),
                                                    model_parameters=model.parameters())
        self.engine = context.wrap_model_engine(self.engine)
        self.after_wrapping()

    def after_wrapping(self):
        pass

    def build_callbacks(self):
        return self.callbacks

    def build_training_data_loader(self):
        return pytorch.DataLoader(Line(), batch_size=4)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Line(8), batch_size=4)

    def micro_batch(self, iterator):
        x, y = self.context.to_device(next(iterator))
        loss = self.loss(self.engine(x), y)
        self.engine.backward(loss)
        self.engine.step()
        return loss

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        return {"loss": self.micro_batch(dataloader_iter)}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        x, y = next(dataloader_iter)
        return {"val_loss": self.loss(self.engine(x), y)}


class TrialTest(PackageTest):
    def setUp(self):
        super().setUp()
        for name in ("DSAT_EXPERIMENT", "DET_MANUAL_INIT_DISTRIBUTED"):
            os.environ.pop(name, None)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)

    def train(self, trial_class, length=4, hparams=None, **config):
        """Trains `trial_class` as the harness does; the trial."""
        config.setdefault("searcher", {"metric": "val_loss", "max_length": length})
        os.environ["DSAT_HPARAMS"] = self.write("hparams.json", hparams or {})
        os.environ["DSAT_EXPERIMENT"] = self.write("experiment.json", config)
        made = []

        class Kept(trial_class):
            def __init__(self, context):
                made.append(self)
                super().__init__(context)

        Kept.__name__ = trial_class.__name__
        sys.modules["the_model"] = sys.modules[__name__]
        setattr(sys.modules[__name__], "Chosen", Kept)
        harness.train("the_model:Chosen")
        return made[0]

    def refused(self, words, trial_class, **more):
        with self.assertRaisesRegex((InvalidExperimentException, RuntimeError, AssertionError, ValueError), words):
            self.train(trial_class, **more)

    def reported(self, group):
        lines = (self.dir / "metrics.jsonl").read_text().splitlines()
        return [(m["steps_completed"], m["metrics"]) for m in map(json.loads, lines) if m["group"] == group]
