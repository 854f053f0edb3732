"""Step times beside PyTorch's and beside stage 0, in interleaved rounds."""
import collections

from programs import python_step_ms, zero
from ratios import HEADER, Ratio

SHAPE = "--layers {layers} --hidden 128 --heads 4 --seq 64 --vocab 512"


def run(trial, o):
    model = SHAPE.format(layers=o.layers)
    ours = f"--model gpt {model} --steps {o.steps}"
    theirs = f"{model} --steps {o.steps} --micro-batch {o.micro_batch}"
    config = {"train_micro_batch_size_per_gpu": o.micro_batch}
    programs = {
        "python": lambda: python_step_ms(theirs),
        "one rank": lambda: trial.step_ms(ours, config),
        "ddp": lambda: python_step_ms(theirs, ranks=2),
    }
    for stage in range(4):
        programs[f"stage {stage}"] = lambda stage=stage: trial.step_ms(
            ours + " --ranks 2", {**config, "zero_optimization": zero(stage)})
    times = collections.defaultdict(list)
    for number in range(o.rounds):
        # The next round begins elsewhere: nobody always runs behind the same neighbour.
        names = list(programs)
        for name in names[number % len(names):] + names[:number % len(names)]:
            times[name].append(programs[name]())
    ratios = [
        Ratio("1 rank : Python eager", times["one rank"], times["python"], 1.05),
        Ratio("2 ranks, stage 0 : DistributedDataParallel", times["stage 0"], times["ddp"], 1.05),
        Ratio("stage 1 : stage 0", times["stage 1"], times["stage 0"], 1.1),
        Ratio("stage 2 : stage 0", times["stage 2"], times["stage 0"], 1.15),
        Ratio("stage 3 : stage 0", times["stage 3"], times["stage 0"], 1.35),
    ]
    print(f"\nSpeed: {o.rounds} rounds, {o.steps} steps each, gpt {model}, micro batch {o.micro_batch}\n\n{HEADER}")
    for ratio in ratios:
        print(ratio.row())
    return all(ratio.held for ratio in ratios)
