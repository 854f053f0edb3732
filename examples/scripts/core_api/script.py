#!/usr/bin/env python3
"""A loop of its own around DeepSpeed's engine, with the hyperparameters of an experiment file."""
import deepspeed
import torch
from torch import nn

import dsat

DEFAULTS = {"deepspeed_config": "ds_config.json", "width": 1024, "layers": 8, "steps": 100}


class RandomData(torch.utils.data.Dataset):
    """Stands for a data set: points whose label is the sign of their sum."""

    def __init__(self, width):
        self.points = torch.randn(512, width)

    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        point = self.points[index % len(self.points)]
        return point, (point.sum() > 0).long()


def build_model(width, layers):
    hidden = [layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*hidden, nn.Linear(width, 2))


def main():
    hparams = dsat.get_hparams(DEFAULTS)
    deepspeed.init_distributed()
    model = build_model(hparams["width"], hparams["layers"])
    engine, _, loader, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), training_data=RandomData(hparams["width"]),
        config=dsat.get_ds_config_from_hparams(hparams))
    dtype = next(engine.module.parameters()).dtype

    timer = dsat.StepTimer()
    steps = 0
    for points, labels in loader:
        with dsat.dsat_reporting_context(timer=timer):
            logits = engine(points.to(engine.device, dtype))
            loss = nn.functional.cross_entropy(logits.float(), labels.to(engine.device))
            engine.backward(loss)
            boundary = engine.is_gradient_accumulation_boundary()
            engine.step()
        if not boundary:
            continue
        timer.step()
        steps += 1
        if steps % 10 == 0 and engine.global_rank == 0:
            print(f"step {steps} loss {loss.item():.3f}", flush=True)
        if steps == hparams["steps"]:
            break


if __name__ == "__main__":
    main()
