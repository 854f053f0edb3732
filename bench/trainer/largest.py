"""The largest model under a cap on each rank's memory, at stage 3 beside stage 0: built in, and from TorchScript."""
import os
import subprocess

from programs import PYTHON, Failed, zero

CAP = "96MiB"
RANKS = 4
LIMIT = 3.2  # times stage 0's parameters; 4 would be all of it
WIDTH = 256
EXPORT = f"""import sys, torch
from torch import nn
torch.jit.script(nn.Sequential(*(nn.Linear({WIDTH}, {WIDTH}) for _ in range(int(sys.argv[1]))))).save(sys.argv[2])"""


def gpt(_trial, layers):
    return f"--model gpt --layers {layers} --hidden 128 --heads 4 --seq 8 --vocab 128"


def torchscript(trial, layers):
    file = os.path.join(trial.folder.name, f"chain{layers}.pt")
    if not os.path.exists(file):
        subprocess.run([PYTHON, "-c", EXPORT, str(layers), file], check=True)
    return f"--torchscript {file} --input-spec float:{WIDTH}"


def fits(trial, stage, model):
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero(stage)}
    options = f"{model} --ranks {RANKS} --device-memory {CAP} --activation-checkpointing"
    try:
        trial.measure(options, config, steps=2)
    except Failed as failure:
        if "OutOfMemoryError" not in str(failure):
            raise
        return False
    return True


def largest(trial, stage, model):
    """Layers, by doubling and halving."""
    low, high = 1, 2
    while fits(trial, stage, model(trial, high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(trial, stage, model(trial, middle)) else (low, middle)
    return low


def run(trial, o):
    print(f"\nLargest model in {CAP} a rank, {RANKS} ranks, default buckets\n\n"
          "| model | parameters at stage 0 | at stage 3 | times | at least | |\n|---|---|---|---|---|---|")
    all_held = True
    for name, model in (("gpt", gpt), ("TorchScript", torchscript)):
        def parameters(stage):
            layers = largest(trial, stage, model)
            config = {"train_micro_batch_size_per_gpu": 1}
            return trial.information(model(trial, layers), config)["num_params"]

        replicated, partitioned = parameters(0), parameters(3)
        ratio = partitioned / replicated
        held = ratio >= LIMIT
        all_held = all_held and held
        print(f"| {name} | {replicated:,} | {partitioned:,} | {ratio:.2f} | {LIMIT} | {'held' if held else 'MISSED'} |",
              flush=True)
    return all_held
