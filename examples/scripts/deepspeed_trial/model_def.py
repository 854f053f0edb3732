"""A training class in the manner of Determined's DeepSpeedTrial: it builds its engine and trains one batch."""
import deepspeed
import torch
from torch import nn

import dsat


class RandomData(torch.utils.data.Dataset):
    """Stands for a data set: points whose label is the sign of their sum."""

    def __init__(self, width):
        self.points = torch.randn(512, width)

    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        point = self.points[index % len(self.points)]
        return point, (point.sum() > 0).long()


class ClassifierTrial:
    def __init__(self, hparams):
        self.hparams = hparams
        width = hparams["width"]
        hidden = [layer for _ in range(hparams["layers"]) for layer in (nn.Linear(width, width), nn.GELU())]
        model = nn.Sequential(*hidden, nn.Linear(width, 2))
        self.engine, _, _, _ = deepspeed.initialize(
            model=model, model_parameters=model.parameters(), config=dsat.get_ds_config_from_hparams(hparams))
        self.dtype = next(self.engine.module.parameters()).dtype

    def build_training_data_loader(self):
        return self.engine.deepspeed_io(RandomData(self.hparams["width"]))

    def train_batch(self, batch):
        """One micro step; the loss."""
        points, labels = batch
        logits = self.engine(points.to(self.engine.device, self.dtype))
        loss = nn.functional.cross_entropy(logits.float(), labels.to(self.engine.device))
        self.engine.backward(loss)
        self.engine.step()
        return loss.item()
