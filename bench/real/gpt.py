#!/usr/bin/env python3
"""A GPT of 7.5 million parameters that learns to continue a number series, trained by DeepSpeed.

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

WIDTH, HEADS, LAYERS, SEQUENCE, VOCABULARY = 384, 6, 4, 32, 512


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries_keys_values, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        samples, length, _ = x.shape
        heads = self.queries_keys_values(self.before_attention(x)).view(samples, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        attended = scores.masked_fill(future, float("-inf")).softmax(3) @ value
        x = x + self.merge(attended.transpose(1, 2).reshape(samples, length, WIDTH))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(SEQUENCE, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def series(samples):
    """Arithmetic series modulo the vocabulary, and what comes next at every place."""
    first, step = torch.randint(VOCABULARY, (samples, 1)), torch.randint(1, 9, (samples, 1))
    tokens = (first + step * torch.arange(SEQUENCE + 1)) % VOCABULARY
    return tokens[:, :-1], tokens[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", "0")))
    parser.add_argument("--steps", type=int, default=1000)
    arguments = deepspeed.add_config_arguments(parser).parse_args()
    torch.manual_seed(1)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    engine, _, _, _ = deepspeed.initialize(args=arguments, model=model, optimizer=optimizer,
                                           model_parameters=model.parameters())
    for _ in range(arguments.steps * engine.gradient_accumulation_steps()):
        tokens, targets = series(engine.train_micro_batch_size_per_gpu())
        loss = functional.cross_entropy(engine(tokens).flatten(0, 1), targets.flatten())
        engine.backward(loss)
        engine.step()


if __name__ == "__main__":
    main()
