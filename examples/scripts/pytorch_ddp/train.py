#!/usr/bin/env python3
"""Trains a small network with DistributedDataParallel over Gloo; ZeRO stage 1 is torch's ZeroRedundancyOptimizer.

    train.py --ranks 2 --memory 112 --deepspeed_config ds_config.json

Batch sizes, stage and bucket size are those of the DeepSpeed configuration, so that dsat-host can tune them. The
process group is Gloo's and everything runs on processors: no accelerator is needed.
"""
import argparse
import contextlib
import os
import sys

# One thread a rank, as torchrun has it. Before torch is loaded: the threads that a BLAS starts there are not forked.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import dsat
import memory
import ranks

VOCABULARY, WORDS, WIDTH, LAYERS, CLASSES = 500, 64, 512, 8, 10


def parse_arguments():
    parser = argparse.ArgumentParser(description="a small network on processors, tuned by dsat-host")
    parser.add_argument("--deepspeed_config", required=True, help="batch sizes, optimizer, ZeRO stage 0 or 1")
    parser.add_argument("--ranks", type=int, default=2, help="processes to start; torchrun starts its own")
    parser.add_argument("--memory", type=int, default=112, help="MiB that one process may use for training")
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps")
    return parser.parse_args()


class Averager(nn.Module):
    """A deep averaging network: what the words of a text mean on average, then some dense layers."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.words = nn.Sequential(nn.LayerNorm(WIDTH), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(WIDTH), nn.GELU())
        dense = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())]
        self.dense = nn.Sequential(*dense, nn.Linear(WIDTH, CLASSES))

    def forward(self, text):
        return self.dense(self.words(self.embedding(text)).mean(1))


def build_optimizer(model, config, stage):
    options = config["optimizer"]["params"]
    if stage == 0:
        return torch.optim.Adam(model.parameters(), **options)
    if stage == 1:
        return ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, **options)
    sys.exit(f"train.py: ZeRO stage {stage}: this script has 0 and 1 (dsat-host --zero-stages 0 1)")


def batches(size):
    """Random texts; the class of each is the class that most of its words have."""
    while True:
        texts = torch.randint(VOCABULARY, (size, WORDS))
        yield texts, nn.functional.one_hot(texts % CLASSES, CLASSES).sum(1).argmax(1)


def train(args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    torch.ones(256, 256) @ torch.ones(256, 256)  # lets the libraries take what they need before the budget is set
    budget = memory.Budget(args.memory * 2**20)

    config = dsat.get_ds_config_from_hparams({"deepspeed_config": args.deepspeed_config})
    micro_batch = config["train_micro_batch_size_per_gpu"]
    accumulation = config.get("gradient_accumulation_steps", 1)
    zero = config.get("zero_optimization", {})
    # DeepSpeed counts elements, torch megabytes; elements of four bytes.
    bucket_mb = zero.get("reduce_bucket_size", 5e8) * 4 / 2**20
    model = DistributedDataParallel(Averager(), bucket_cap_mb=bucket_mb, gradient_as_bucket_view=True)
    optimizer = build_optimizer(model, config, zero.get("stage", 0))
    dense_params = sum(p.numel() for p in model.module.dense.parameters())
    timer = dsat.StepTimer(model, flops_per_sample=6 * dense_params, memory=budget)

    data = batches(micro_batch)
    for step in range(args.steps):
        for micro_step in range(accumulation):
            texts, labels = next(data)
            last = micro_step == accumulation - 1
            with contextlib.nullcontext() if last else model.no_sync():
                with timer.forward():
                    loss = nn.functional.cross_entropy(model(texts), labels) / accumulation
                budget.sample()
                with timer.backward():
                    loss.backward()
        budget.sample()
        with timer.optimizer():
            optimizer.step()
            optimizer.zero_grad()
        if dist.get_rank() == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item() * accumulation:.3f}", flush=True)
        timer.step()


if __name__ == "__main__":
    arguments = parse_arguments()
    sys.exit(ranks.run(lambda: train(arguments), arguments.ranks))
