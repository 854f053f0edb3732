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


class Classifier(nn.Module):
    def __init__(self, width: int, classes: int = 10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(3)])
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean(dim=[2, 3]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--width", type=int, default=32)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.jit.script(Classifier(options.width)).save(options.file)


if __name__ == "__main__":
    main()
