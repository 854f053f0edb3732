"""Exports a small image classifier to TorchScript, for dsat-trial to train and tune.

usage: export.py FILE [--width CHANNELS]
"""
import argparse

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(4, channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


def classifier(width: int, classes: int = 10) -> nn.Sequential:
    """A chain of layers, so that it can be trained with --activation-checkpointing."""
    return nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), *[Block(width) for _ in range(3)],
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--width", type=int, default=32)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.jit.script(classifier(options.width)).save(options.file)


if __name__ == "__main__":
    main()
