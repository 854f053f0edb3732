"""Losses of every combination beside one process in fp32 that sees the same micro batches one after the other."""
import concurrent.futures
import dataclasses
import itertools
import math
import subprocess

from programs import EXAMPLES, Failed, PYTHON, zero

STEPS = 5
FP32 = 1e-5  # sums in another order
BF16_UNIT_ROUNDOFF = 2.0**-8  # 8 significant bits, rounded to the nearest


@dataclasses.dataclass(frozen=True)
class Model:
    options: str
    products: int  # matrix products and convolutions one behind the other, the longest way to the loss
    adam_lr: float  # both move the loss by some percent in STEPS steps
    sgd_lr: tuple  # with accumulation 1 and 3


MODELS = {
    "gpt": Model("--model gpt --layers 2 --hidden 32 --heads 2 --seq 16 --vocab 64", 13, 1e-2, (2.0, 2.0)),
    "resnet": Model("--model resnet --depth 8 --image 8", 8, 1e-3, (0.05, 0.05)),
    "torchscript": Model("--torchscript {exported} --input-spec float:3x8x8", 8, 1e-3, (0.1, 0.3)),
}


@dataclasses.dataclass(frozen=True)
class Combination:
    kind: str  # row of the table
    ranks: int = 1
    stage: int = 0
    bf16: bool = False
    accumulation: int = 1
    recomputed: bool = False
    overlap: bool = False
    offload: tuple = ()
    pipeline: int = 1
    is_sgd: bool = False
    lr: float = 0

    def shares(self):
        """Data-parallel ranks, which one process stands in for with as many more micro steps."""
        return self.ranks // self.pipeline

    def options(self):
        more = " --activation-checkpointing" if self.recomputed else ""
        return f"--ranks {self.ranks}{more}" + (f" --pipeline-stages {self.pipeline}" if self.pipeline > 1 else "")

    def optimizer(self):
        # Adam divides a gradient by its own size: where that is all rounding, the update is as large as any. SGD keeps
        # errors as small as they are in the gradient, and so has a bound.
        if self.is_sgd:
            return {"type": "SGD", "params": {"lr": self.lr, "momentum": 0.9}}
        return {"type": "Adam", "params": {"lr": self.lr}}

    def reference(self):
        """One process that sees the same micro batches."""
        return Combination("reference", accumulation=self.accumulation * self.shares(), is_sgd=self.is_sgd, lr=self.lr)

    def config(self):
        section = zero(self.stage, overlap_comm=self.overlap, reduce_bucket_size=7000, allgather_bucket_size=3000)
        section.update({f"offload_{part}": {"device": "cpu"} for part in self.offload})
        return {
            "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": self.accumulation,
            "gradient_clipping": 1.0,
            "bf16": {"enabled": self.bf16},
            "optimizer": self.optimizer(),
            "zero_optimization": section,
        }

    def __str__(self):
        return (f"ZeRO {self.stage}, {self.ranks} ranks" + ", recomputed" * self.recomputed +
                ", overlap" * self.overlap + "".join(f", offload_{part}" for part in self.offload) +
                f", {self.pipeline} stages" * (self.pipeline > 1))


def combinations(model, bf16, accumulation):
    common = {"bf16": bf16, "accumulation": accumulation, "is_sgd": bf16,
              "lr": model.sgd_lr[accumulation > 1] if bf16 else model.adam_lr}
    for ranks, stage, recomputed, overlap in itertools.product((1, 2, 4), range(4), (False, True), (False, True)):
        yield Combination("data-parallel", ranks, stage, recomputed=recomputed, overlap=overlap, **common)
    for ranks, (stage, parts) in itertools.product((1, 2, 4), ((1, ("optimizer",)), (2, ("optimizer",)),
                                                               (3, ("optimizer",)), (3, ("param",)),
                                                               (3, ("optimizer", "param")))):
        yield Combination("offload", ranks, stage, offload=parts, **common)
    for ranks, stage, recomputed in itertools.product((2, 4), (0, 1), (False, True)):
        yield Combination("pipeline", ranks, stage, recomputed=recomputed, pipeline=2, **common)


def difference(losses, expected):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected))


class Comparison:
    """Runs combinations, each beside its reference, a few at a time."""

    def __init__(self, trial, model, jobs):
        self.trial, self.model = trial, model
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.references = {}

    def losses(self, combination):
        options = f"{self.model.options} {combination.options()}"
        return self.trial.measure(options, combination.config(), STEPS)["losses"]

    def reference(self, combination):
        """Started once, when it is first asked for."""
        plain = combination.reference()
        if plain not in self.references:
            self.references[plain] = self.pool.submit(self.losses, plain)
        return self.references[plain]

    def run(self, wanted):
        """[(combination, difference, bound, what the updates do to the loss)]"""
        wanted = list(wanted)
        for c in wanted:  # before the others, so that nobody waits for one that has no thread
            self.reference(c)
            self.reference(dataclasses.replace(c, lr=0))
        return list(self.pool.map(self.compare, wanted))

    def compare(self, c):
        expected, untrained = (self.reference(same).result() for same in (c, dataclasses.replace(c, lr=0)))
        moved = difference(untrained, expected)
        try:
            off = difference(self.losses(c), expected)
        except Failed as failure:
            print(failure)
            off = math.inf
        return c, off, self.bound(c.bf16, expected, moved), moved

    def bound(self, bf16, expected, moved):
        if not bf16:
            return FP32
        # A product rounds its weights, its input and its output. Such errors are independent and add up as their
        # squares do; backward has as many again, and what it gets wrong acts as far as the updates move the loss.
        rounding = math.sqrt(3 * self.model.products) * BF16_UNIT_ROUNDOFF
        derived = rounding / min(expected) + math.sqrt(2) * rounding * moved
        # It does not count that samples average their errors; no more than one rounding of the loss itself is let pass.
        return min(derived, BF16_UNIT_ROUNDOFF)


def print_row(name, bf16, accumulation, kind, results):
    off, bound, combination = max(((r[1], r[2], r[0]) for r in results), key=lambda r: r[0] / r[1])
    # A training that forgets its updates has to be noticed by each of them.
    can_fail = all(moved > limit for _, _, limit, moved in results)
    held = off <= bound and can_fail
    print(f"| {name} | {'bf16' if bf16 else 'fp32'} | {accumulation} | {kind} | {len(results)} | {off:.1e} | "
          f"{bound:.1e} | {min(r[3] for r in results):.1e} | {combination} | {'held' if held else 'MISSED'} |",
          flush=True)
    return held


def run(trial, o):
    exported = f"{trial.folder.name}/exported.pt"
    subprocess.run([PYTHON, EXAMPLES / "trials/torchscript/export.py", exported, "--width", "8"], check=True)
    print("\nCorrectness: the largest relative difference of a loss from one fp32 process, as a share of its bound; "
          "what a training without updates would differ by\n\n"
          "| model | precision | accumulation | | combinations | worst | "
          "bound | without updates | the worst one | |\n|---|---|---|---|---|---|---|---|---|---|")
    all_held = True
    for name in o.models:
        model = dataclasses.replace(MODELS[name], options=MODELS[name].options.format(exported=exported))
        comparison = Comparison(trial, model, o.jobs)
        for precision, accumulation in itertools.product(o.precisions, (1, 3)):
            results = comparison.run(combinations(model, precision == "bf16", accumulation))
            for kind, group in itertools.groupby(results, key=lambda r: r[0].kind):
                all_held = print_row(name, precision == "bf16", accumulation, kind, list(group)) and all_held
    return all_held
