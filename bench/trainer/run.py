#!/usr/bin/python3
"""Measures dsat-trial: speed beside PyTorch, correctness of every combination, overlap on a slow link, memory, resident
memory, bytes on the wire, the largest model under a cap.

    bench/trainer/run.py [speed] [correctness] [overlap] [memory] [resident] [volume] [largest]     without one: all

Ends with status 1 if a limit is missed.
"""
import argparse
import pathlib
import sys

import correctness
import largest
import memory
import overlap
import resident
import speed
import volume
from programs import DsatTrial

PARTS = {"speed": speed, "correctness": correctness, "overlap": overlap, "memory": memory, "resident": resident,
         "volume": volume, "largest": largest}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure")
    parser.add_argument("--build", default=root / "build/release", help="folder of dsat-trial")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds of speed and overlap")
    parser.add_argument("--steps", type=int, default=40, help="optimizer steps of one run")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--large", action="store_true", help="speed of a model of 22 million parameters, too")
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--models", nargs="+", choices=correctness.MODELS, default=[*correctness.MODELS],
                        help="of correctness")
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"],
                        help="of correctness")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at a time of correctness")
    o = parser.parse_args()
    if o.steps < 10:
        parser.error("--steps: at least 10, of which the first 5 are not counted")
    trial = DsatTrial(o.build)
    held = [PARTS[part].run(trial, o) for part in o.parts or PARTS]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
