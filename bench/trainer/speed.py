"""Step times beside PyTorch's and beside stage 0, in interleaved rounds.

PyTorch gets what its users set for speed: gradients as views of DistributedDataParallel's buckets, set_to_none, and
glibc's allocator set to keep what it has, as dsat-trial tells its own. Gloo is measured beside Gloo: dsat-trial's
ranks are then started one by one, because those of its launcher share memory, which PyTorch has no transport for on a
CPU.
"""
import collections

from programs import python_step_ms, zero
from ratios import HEADER, Ratio

SMALL = "--layers {layers} --hidden 128 --heads 4 --seq 64 --vocab 512"
LARGE = "--layers 7 --hidden 512 --heads 8 --seq 64 --vocab 512"  # 22.6 million parameters


def interleaved(programs, rounds):
    """Times by name. The next round begins elsewhere: nobody always runs behind the same neighbour."""
    times = collections.defaultdict(list)
    for number in range(rounds):
        names = list(programs)
        for name in names[number % len(names):] + names[:number % len(names)]:
            times[name].append(programs[name]())
    return times


def beside_python(trial, model, micro_batch, steps):
    ours = f"--model gpt {model} --steps {steps}"
    theirs = f"{model} --steps {steps} --micro-batch {micro_batch}"

    def config(stage):
        return {"train_micro_batch_size_per_gpu": micro_batch, "zero_optimization": zero(stage)}

    programs = {
        "python": lambda: python_step_ms(theirs),
        "one rank": lambda: trial.step_ms(ours, config(0)),
        "ddp": lambda: python_step_ms(theirs, ranks=2),
        "zero redundancy": lambda: python_step_ms(theirs + " --zero-redundancy", ranks=2),
    }
    for stage in (0, 1):
        programs[f"gloo {stage}"] = lambda stage=stage: trial.step_ms_apart(ours, config(stage), 2, ())
    for stage in range(4):
        programs[f"stage {stage}"] = lambda stage=stage: trial.step_ms(ours + " --ranks 2", config(stage))
    return programs


ROWS = (
    ("1 rank : Python eager", "one rank", "python", 1.05),
    ("2 ranks over Gloo, stage 0 : DistributedDataParallel", "gloo 0", "ddp", 1.05),
    ("2 ranks over Gloo, stage 1 : ZeroRedundancyOptimizer", "gloo 1", "zero redundancy", 1.05),
    ("stage 0, shared memory : over Gloo", "stage 0", "gloo 0", 1.05),
    ("stage 1 : stage 0", "stage 1", "stage 0", 1.1),
    ("stage 2 : stage 0", "stage 2", "stage 0", 1.15),
    ("stage 3 : stage 0", "stage 3", "stage 0", 1.35),
)


def table(trial, model, micro_batch, steps, rounds):
    times = interleaved(beside_python(trial, model, micro_batch, steps), rounds)
    ratios = [Ratio(name, times[ours], times[theirs], limit) for name, ours, theirs, limit in ROWS]
    print(f"\nSpeed: {rounds} rounds, {steps} steps each, gpt {model}, micro batch {micro_batch}\n\n{HEADER}")
    for ratio in ratios:
        print(ratio.row(), flush=True)
    return all(ratio.held for ratio in ratios)


def run(trial, o):
    held = [table(trial, SMALL.format(layers=o.layers), o.micro_batch, o.steps, o.rounds)]
    if o.large:
        held.append(table(trial, LARGE, 1, o.steps, o.rounds))
    return all(held)
