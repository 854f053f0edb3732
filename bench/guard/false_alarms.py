#!/usr/bin/env python3
"""How often does the guard take a right configuration for a wrong one?

    /usr/bin/python3 bench/guard/false_alarms.py --judge build/release/bench/bench_guard [--studies 500] [--seed 1]

Trains small models with torch on one processor: each study has a model, a precision (fp32, fp16, bf16), ranks (1 to 4)
and an own batch, with which the own configuration runs twice. Its twin adds the same numbers in another order, as
another bucket, stage or overlap does, and sums gradients in the model's type or in fp32. A trial has a batch that is 1
to 64 times as large or as small. All are right, so each that the guard calls diverged is a false alarm. bench_guard
judges with the host's own functions and prints the rates; --keep FILE keeps the losses and norms.
"""
import argparse
import json
import random
import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional

STEPS, WIDTH, CLASSES, LENGTH = 6, 32, 24, 8
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Rounded(nn.Module):
    """A layer whose inputs, weights and outputs have the precision's bits: processors have no products in fp16."""

    def __init__(self, layer, kind):
        super().__init__()
        self.layer, self.kind = layer, kind

    def forward(self, x):
        weight, bias = (p.to(self.kind).float() for p in (self.layer.weight, self.layer.bias))
        return functional.linear(x.to(self.kind).float(), weight, bias).to(self.kind).float()


def make_model(name, kind):
    def linear(inputs, outputs):
        return Rounded(nn.Linear(inputs, outputs), kind)

    if name == "mlp":
        return nn.Sequential(linear(WIDTH, 64), nn.GELU(), linear(64, 64), nn.GELU(), linear(64, CLASSES))
    if name == "deep":
        blocks = [layer for _ in range(6) for layer in (linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU())]
        return nn.Sequential(*blocks, linear(WIDTH, CLASSES))
    return Attention(linear)


class Attention(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.enter, self.mix, self.head = linear(4, WIDTH), linear(WIDTH, 3 * WIDTH), linear(WIDTH, CLASSES)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = self.enter(x.view(-1, LENGTH, 4))
        query, key, value = self.mix(self.norm(x)).chunk(3, dim=2)
        x = x + (query @ key.transpose(1, 2) / WIDTH ** 0.5).softmax(2) @ value
        return self.head(x.mean(1))


class Job:
    """A model, its data and its optimizer; `run` trains it from the same start."""

    def __init__(self, draw):
        self.name, self.precision = draw.choice(["mlp", "deep", "attention"]), draw.choice(list(PRECISIONS))
        self.kind, self.ranks = PRECISIONS[self.precision], draw.choice([1, 2, 4])
        self.seed, self.rate = draw.randrange(10**6), draw.choice([1e-3, 3e-3])
        self.optimizer = draw.choice([torch.optim.AdamW, torch.optim.SGD])
        self.is_regression = self.name == "mlp" and draw.random() < 0.3
        generator = torch.Generator().manual_seed(self.seed)
        self.inputs = torch.randn(8192, WIDTH, generator=generator)
        self.labels = (self.inputs @ torch.randn(WIDTH, CLASSES, generator=generator)).argmax(1)

    def loss_of(self, model, rows):
        output = model(self.inputs[rows])
        if self.is_regression:
            return (output - self.inputs[rows, :CLASSES] ** 2).square().mean()
        return functional.cross_entropy(output, self.labels[rows])

    def run(self, micro, accumulation, order=0, sums_in_kind=True):
        """Losses of rank 0 and norms. `order`: of samples within a batch and of ranks in a sum."""
        torch.manual_seed(self.seed)
        model = make_model(self.name, self.kind)
        parameters = list(model.parameters())
        optimizer = self.optimizer(parameters, lr=self.rate * (10 if self.optimizer is torch.optim.SGD else 1))
        shuffle, losses, norms, at = random.Random(order), [], [], 0
        for _ in range(STEPS):
            of_ranks, first = [None] * self.ranks, []
            for _ in range(accumulation):
                for rank in range(self.ranks):
                    rows = [(at + i) % len(self.inputs) for i in range(micro)]
                    at += micro
                    shuffle.shuffle(rows)
                    loss = self.loss_of(model, rows)
                    gradients = torch.autograd.grad(loss / accumulation, parameters)
                    gradients = [g.to(self.kind) if sums_in_kind else g.to(self.kind).float() for g in gradients]
                    before = of_ranks[rank]
                    of_ranks[rank] = gradients if before is None else [a + b for a, b in zip(before, gradients)]
                    if rank == 0:
                        first.append(float(loss.detach().to(self.kind)))
            shuffle.shuffle(of_ranks)
            summed = [sum(parts[1:], parts[0]).float() / self.ranks for parts in zip(*of_ranks)]
            for parameter, gradient in zip(parameters, summed):
                parameter.grad = gradient
            norms.append(float(torch.sqrt(sum(g.square().sum() for g in summed))))
            losses.append(sum(first) / len(first))
            optimizer.step()
        return {"losses": losses, "grad_norms": norms}


def study_of(draw):
    job = Job(draw)
    own_micro, accumulation = draw.choice([1, 2, 4, 8, 16]), draw.choice([1, 1, 2, 4])
    own_batch = own_micro * accumulation * job.ranks
    factor = 2 ** draw.randrange(7)
    micro, steps = own_micro * factor, accumulation
    if draw.random() < 0.5:  # as many times smaller, as far as there are samples
        micro, steps = max(1, own_micro // factor), max(1, accumulation // max(1, factor // own_micro))
    own = [job.run(own_micro, accumulation, order) for order in (0, 1)]
    config = {} if job.precision == "fp32" else {job.precision: {"enabled": True}}
    return {"what": "%s %s" % (job.name, job.precision), "config": config, "own": own, "own_batch": own_batch,
            "twin": job.run(own_micro, accumulation, 2, sums_in_kind=draw.random() < 0.5),
            "trial": job.run(micro, steps, 3), "batch": micro * steps * job.ranks}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--judge", required=True)
    parser.add_argument("--studies", type=int, default=500, help="of two clean trials each: a twin and a trial")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for study in range(options.studies):
        lines.append(json.dumps(study_of(random.Random("%d.%d" % (options.seed, study)))))
        print("\r%d studies" % (study + 1), end="", file=sys.stderr)
    print(file=sys.stderr)
    if options.keep:
        with open(options.keep, "w") as file:
            file.write("\n".join(lines) + "\n")
    subprocess.run([options.judge], input="\n".join(lines), text=True, check=True)


if __name__ == "__main__":
    main()
