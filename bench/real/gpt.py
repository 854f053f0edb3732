#!/usr/bin/env python3
"""A GPT that learns to continue a number series, trained by DeepSpeed; by default of 7.5 million parameters.

An ordinary DeepSpeed script that knows nothing of dsat: gpt.py --deepspeed --deepspeed_config FILE [--steps N]
"""
import argparse
import os

import deepspeed
import torch
from torch import nn
from torch.nn import functional

import processor_clock  # noqa: F401
import torch_1_13  # noqa: F401

HEAD_WIDTH, VOCABULARY = 64, 512


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        samples, length, width = x.shape
        heads = self.queries_keys_values(self.before_attention(x)).view(samples, length, 3, -1, HEAD_WIDTH)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(2, 3) / HEAD_WIDTH ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        attended = scores.masked_fill(future, float("-inf")).softmax(3) @ value
        x = x + self.merge(attended.transpose(1, 2).reshape(samples, length, width))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    def __init__(self, width, layers, sequence):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, VOCABULARY))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def series(samples, length, device):
    """Arithmetic series modulo the vocabulary, and what comes next at every place."""
    first, step = torch.randint(VOCABULARY, (samples, 1)), torch.randint(1, 9, (samples, 1))
    tokens = ((first + step * torch.arange(length + 1)) % VOCABULARY).to(device)
    return tokens[:, :-1], tokens[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", "0")))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=32)
    arguments = deepspeed.add_config_arguments(parser).parse_args()
    torch.manual_seed(1)
    model = GPT(arguments.width, arguments.layers, arguments.sequence)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    engine, _, _, _ = deepspeed.initialize(args=arguments, model=model, optimizer=optimizer,
                                           model_parameters=model.parameters())
    for _ in range(arguments.steps * engine.gradient_accumulation_steps()):
        tokens, targets = series(engine.train_micro_batch_size_per_gpu(), arguments.sequence, engine.device)
        loss = functional.cross_entropy(engine(tokens).flatten(0, 1), targets.flatten())
        engine.backward(loss)
        engine.step()


if __name__ == "__main__":
    main()
