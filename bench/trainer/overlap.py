"""overlap_comm on and off over a slowed link: a loopback of its own, in a network namespace of its own.

The ranks are started one by one: those of one launcher would share memory and leave the link alone.
"""
import os
import shutil
import subprocess

from programs import zero
from ratios import HEADER, Ratio

NAMESPACE = f"dsat-bench-{os.getpid()}"
RATE = "400mbit"
INSIDE = ("ip", "netns", "exec", NAMESPACE)


def why_not():
    if os.geteuid() != 0:
        return "it needs root to make a network namespace"
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} (package iproute2) is not installed" if missing else ""


class SlowLink:
    def __enter__(self):
        subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
        for command in ("ip link set lo mtu 1500 up",
                        f"tc qdisc add dev lo root tbf rate {RATE} burst 64kb latency 50ms"):
            subprocess.run([*INSIDE, *command.split()], check=True)

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


def run(trial, o):
    reason = why_not()
    if reason:
        print(f"\nOverlap: not measured: {reason}")
        return True
    options = f"--model gpt --layers {o.layers} --hidden 128 --heads 4 --seq 64 --vocab 512 --steps {o.steps}"

    def step_ms(stage, overlap):
        section = zero(stage, overlap_comm=overlap, reduce_bucket_size=200000)
        if stage == 3:
            section["stage3_prefetch_bucket_size"] = 200000
        config = {"train_micro_batch_size_per_gpu": o.micro_batch, "zero_optimization": section}
        return trial.step_ms_apart(options, config, 2, INSIDE)

    print(f"\nOverlap: a loopback of {RATE}, 2 ranks, buckets of 200,000 elements (stage 3: as many ahead), "
          f"{o.rounds} rounds; with overlap_comm : without\n\n{HEADER}")
    all_held = True
    with SlowLink():
        for stage in range(4):
            pairs = [(step_ms(stage, True), step_ms(stage, False)) for _ in range(o.rounds)]
            # Faster for certain: the interval's upper end is below 1. Asked for where gradients travel during backward.
            ratio = Ratio(f"stage {stage}", *zip(*pairs), limit=1.0)
            held = ratio.high < 1
            all_held = all_held and held
            print(ratio.row().rsplit("|", 2)[0] + f"| {'faster' if held else 'not faster'} |", flush=True)
    return all_held
