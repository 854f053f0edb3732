#!/usr/bin/python3
"""The built-in model of dsat-trial, `--model gpt`, as one writes it in PyTorch: eager, AdamW, DistributedDataParallel,
with ZeroRedundancyOptimizer if asked for.

Initial values and batches are those of dsat-trial, number by number, so that losses can be compared as well as times.
Prints one JSON object: {"losses": [...], "step_ms": [...]}. Ranks: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
"""
import argparse
import json
import math
import os
import time

import numpy
import torch
import torch.distributed
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional

GOLDEN = numpy.uint64(0x9E3779B97F4A7C15)


def mix(x):
    """The finaliser of SplitMix64."""
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def bits(seed, stream, count):
    with numpy.errstate(over="ignore"):
        key = mix(mix(numpy.uint64(seed)) ^ (numpy.uint64(stream) * GOLDEN + numpy.uint64(1)))
        return mix(key + (numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(1)) * GOLDEN)


def uniform(seed, stream, count):
    whole = (bits(seed, stream, count) >> numpy.uint64(40)).astype(numpy.int64) - (1 << 23)
    return whole.astype(numpy.float32) * numpy.float32(2.0**-23)


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads, h = o.heads, o.hidden
        self.attention_norm = nn.LayerNorm(h)
        self.qkv = nn.Linear(h, 3 * h)
        self.projection = nn.Linear(h, h)
        self.mlp_norm = nn.LayerNorm(h)
        self.mlp_in = nn.Linear(h, 4 * h)
        self.mlp_out = nn.Linear(4 * h, h)

    def attend(self, qkv, mask):
        batch, seq, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3 // self.heads
        q, k, v = qkv.view(batch, seq, 3, self.heads, width).permute(2, 0, 3, 1, 4)
        q, k, v = (part.reshape(batch * self.heads, seq, width) for part in (q, k, v))
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=1 / math.sqrt(width))
        mixed = torch.bmm(functional.softmax(scores, dim=-1), v)
        return mixed.view(batch, self.heads, seq, width).transpose(1, 2).reshape(batch, seq, -1)

    def forward(self, x, mask):
        x = x + self.projection(self.attend(self.qkv(self.attention_norm(x)), mask))
        return x + self.mlp_out(functional.gelu(self.mlp_in(self.mlp_norm(x))))


class Gpt(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(o.vocab, o.hidden))
        self.positions = nn.Parameter(torch.empty(o.seq, o.hidden))
        self.blocks = nn.ModuleList(Block(o) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.hidden)
        self.head = nn.Linear(o.hidden, o.vocab, bias=False)
        self.register_buffer("mask", torch.full((1, o.seq, o.seq), -math.inf).triu_(1))

    def forward(self, tokens):
        x = functional.embedding(tokens, self.tokens) + self.positions
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


def initialise(model, o):
    residual = 0.02 / math.sqrt(2.0 * o.layers)
    for stream, (name, parameter) in enumerate(model.named_parameters()):
        if parameter.dim() == 1:
            nn.init.constant_(parameter, 1.0 if name.endswith("norm.weight") else 0.0)
            continue
        stddev = residual if "projection" in name or "mlp_out" in name else 0.02
        values = numpy.float32(stddev * math.sqrt(3.0)) * uniform(o.seed, stream, parameter.numel())
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values).view_as(parameter))


def batch(o, number):
    shape = (o.micro_batch, o.seq + 1)
    raw = bits(o.seed, 0xFFFFFFFFFFFFFFFF ^ number, shape[0] * shape[1]) % numpy.uint64(o.vocab)
    tokens = torch.from_numpy(raw.astype(numpy.int64)).view(shape)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)


def train(o, rank, world_size):
    model = Gpt(o)
    initialise(model, o)
    trained = model
    if world_size > 1:
        trained = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    settings = {"lr": 1e-3, "weight_decay": 0}
    if o.zero_redundancy:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **settings)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), **settings)
    losses, step_ms = [], []
    for step in range(o.steps):
        tokens, target = batch(o, step * world_size + rank)
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(trained(tokens).view(-1, o.vocab), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        step_ms.append((time.perf_counter() - start) * 1000)
    return losses, step_ms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    defaults = dict(layers=4, hidden=128, heads=4, seq=64, vocab=512, micro_batch=8, steps=20, seed=42)
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--zero-redundancy", action="store_true")
    o = parser.parse_args()
    torch.set_num_threads(1)
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world_size > 1:
        torch.distributed.init_process_group("gloo")
    losses, step_ms = train(o, rank, world_size)
    if world_size > 1:
        mean = torch.tensor(losses, dtype=torch.float64)
        torch.distributed.all_reduce(mean)
        losses = (mean / world_size).tolist()
    if rank == 0:
        print(json.dumps({"losses": losses, "step_ms": step_ms}))


if __name__ == "__main__":
    main()
