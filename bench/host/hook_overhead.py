#!/usr/bin/env python3
"""What the hook of --inject, and the memory probe in it, add to a step of DeepSpeed.

    bench/host/hook_overhead.py [BUILD_DIR] [--python PYTHON] [--guard] [--rounds N] [--blocks N] [--steps N]
                                [--width N]

Two processes with the same loop (torch's loader, DeepSpeed's engine), one of them with the hook, take turns: a block of
steps each, so that a busy machine is as busy for both; and that with fresh processes again and again, since one process
is faster than another by chance. Prints how many times as long a step takes with the hook, by processor and by wall
clock, with its 95 % interval by resampling the pairs of processes. --guard: what the losses and norms of the guard
alone add; the other process then has the hook without them. PYTHON imports torch and deepspeed; PYTHONPATH is handed
on.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

from probe_overhead import ROOT, interval

LOOP = """
import json, sys, time
import torch, deepspeed
torch.set_num_threads(1)
width, config = int(sys.argv[1]), json.loads(sys.argv[2])
model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(4)))
engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
samples = torch.randn(4096, width)
def batches():
    while True:
        yield from torch.utils.data.DataLoader(samples, batch_size=engine.train_micro_batch_size_per_gpu())
batch = batches()
for line in sys.stdin:
    clocks = time.perf_counter(), time.process_time()
    for _ in range(int(line)):
        engine.backward(engine(next(batch)).square().mean())
        engine.step()
    print("@", time.perf_counter() - clocks[0], time.process_time() - clocks[1], flush=True)
"""
CONFIG = {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 1}, "steps_per_print": 10**9,
          "optimizer": {"type": "Adam", "params": {"torch_adam": True}}, "zero_allow_untested_optimizer": True}


class Loop:
    def __init__(self, python, width, environment):
        self.process = subprocess.Popen([python, "-c", LOOP, str(width), json.dumps(CONFIG)], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)

    def block(self, steps):
        """Seconds of a step by the wall and the processor clock."""
        self.process.stdin.write("%d\n" % steps)
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("@"):
                return [float(seconds) / steps for seconds in line.split()[1:]]
        raise SystemExit("the loop has ended:\n%s" % self.process.stderr.read()[-2000:])

    def end(self):
        return self.process.communicate()[1]


def environments(trial, hook, is_of_guard):
    """Of a loop without the hook, or without its part for the guard, and of one with it."""
    bare = {**os.environ, "DSAT_TRIAL_DIR": str(trial), "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1"}
    def hooked(folder):
        path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**bare, "PYTHONPATH": ":".join(path), "DSAT_INJECT": str(trial / "ds_config.json")}

    if not is_of_guard:
        return bare, hooked(hook)
    shutil.copytree(hook, trial / "hook", ignore=shutil.ignore_patterns("dsat_step_probe.py", "__pycache__"))
    return hooked(trial / "hook"), hooked(hook)


def one_round(options, environments, number):
    """[(wall, processor)] of a step with the hook over that of one without, for fresh processes."""
    order = (0, 1) if number % 2 else (1, 0)
    loops = {}
    for which in order:
        port = str(29611 + 2 * number + which)
        loops[which] = Loop(options.python, options.width, {**environments[which], "MASTER_PORT": port})
    for loop in loops.values():
        loop.block(options.steps)  # the first steps allocate
    blocks = {0: [], 1: []}
    for block in range(options.blocks):
        for which in order if block % 2 else reversed(order):
            blocks[which].append(loops[which].block(options.steps))
    loops[0].end()
    if "gets dsat's configuration" not in loops[1].end():
        raise SystemExit("the hook was not there")
    return [[statistics.median(times[at] for times in blocks[which]) for which in (1, 0)] for at in (0, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", nargs="?", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--guard", action="store_true", help="what the guard alone adds to the hook")
    parser.add_argument("--rounds", type=int, default=12, help="pairs of processes")
    parser.add_argument("--blocks", type=int, default=40, help="of each process")
    parser.add_argument("--steps", type=int, default=10, help="of a block")
    parser.add_argument("--width", type=int, default=512, help="of the model")
    options = parser.parse_args()
    hook = options.build.resolve() / "probe"
    if not (hook / "dsat_inject.py").exists():
        parser.error(f"{hook} has no dsat_inject.py: build dsat-host first")
    with tempfile.TemporaryDirectory() as folder:
        trial = pathlib.Path(folder)
        (trial / "probe").mkdir()
        (trial / "ds_config.json").write_text(json.dumps(CONFIG))
        both, rounds = environments(trial, hook, options.guard), []
        for number in range(options.rounds):
            rounds.append(one_round(options, both, number))
        (report,) = [json.loads(file.read_text()) for file in (trial / "probe").glob("rank*.json")]
    print(f"{'a step':<10} {'with':>10} {'without':>10} {'ratio':>8}   95 %")
    for clock, at in (("processor", 1), ("wall", 0)):
        ratios = [times[at][0] / times[at][1] for times in rounds]
        low, high = interval(ratios)
        hooked_ms, bare_ms = (1e3 * statistics.median(times[at][which] for times in rounds) for which in (0, 1))
        print(f"{clock:<10} {hooked_ms:>7.3f} ms {bare_ms:>7.3f} ms {statistics.median(ratios):>8.4f}   "
              f"{low:.4f} to {high:.4f}")
    print("reported:", report["engines"])


if __name__ == "__main__":
    main()
