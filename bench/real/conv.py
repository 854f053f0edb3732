#!/usr/bin/env python3
"""A residual convolution net of 5.0 million parameters that tells apart striped pictures, trained by DeepSpeed.

An ordinary DeepSpeed script that knows nothing of dsat: conv.py --deepspeed --deepspeed_config FILE [--steps N]
"""
import argparse
import os

import deepspeed
import torch
from torch import nn
from torch.nn import functional

import processor_clock  # noqa: F401
import torch_1_13  # noqa: F401

SIDE, CLASSES = 32, 16
WIDTHS = (32, 64, 128, 256, 512)  # the picture's side halves from each to the next


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.GroupNorm(8, outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(8, outputs))
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


def network():
    blocks = [Residual(inputs, outputs) for inputs, outputs in zip(WIDTHS, WIDTHS[1:])]
    return nn.Sequential(nn.Conv2d(3, WIDTHS[0], 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(WIDTHS[-1], CLASSES))


def stripes(samples):
    """Pictures with stripes of one of so many widths, in noise; and which width it is."""
    classes = torch.randint(CLASSES, (samples,))
    columns = torch.arange(SIDE).float() * (classes + 1).float()[:, None] * 6.28 / SIDE
    return columns.sin()[:, None, None, :] + torch.randn(samples, 3, SIDE, SIDE), classes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", "0")))
    parser.add_argument("--steps", type=int, default=1000)
    arguments = deepspeed.add_config_arguments(parser).parse_args()
    torch.manual_seed(1)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    engine, _, _, _ = deepspeed.initialize(args=arguments, model=model, optimizer=optimizer,
                                           model_parameters=model.parameters())
    for _ in range(arguments.steps * engine.gradient_accumulation_steps()):
        pictures, classes = stripes(engine.train_micro_batch_size_per_gpu())
        loss = functional.cross_entropy(engine(pictures.to(engine.device)), classes.to(engine.device))
        engine.backward(loss)
        engine.step()


if __name__ == "__main__":
    main()
