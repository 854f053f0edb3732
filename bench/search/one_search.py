#!/usr/bin/env python3
"""Draws one study as an SVG: the metric of each trial, the best so far and the user's own configuration.

    one_search.py DIR > docs/images/one-search.svg

DIR is a study's folder. The README's picture shows this one:
    dsat-host --runner sim --sim examples/sim/8-gpus-a100-gpt2-xl.json --max-trials 24 --output-dir DIR

dsat-host is taken from build/release, or from the folder that DSAT_BUILD_DIR names."""
import json
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DSAT_BUILD_DIR", ROOT / "build/release"))
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 92, 844, 40, 282  # pixels; the last four are the borders of the plot
STYLE = """text{font:12px sans-serif;fill:#6e7781}.grid{stroke:#6e7781;stroke-opacity:.25}
.best{fill:none;stroke:#218bff;stroke-width:2.5}.trial{fill:#2da44e}.own{fill:#bf8700}.stage{fill:#fff;font-weight:bold}
.oom{stroke:#e5534b;stroke-width:3;stroke-linecap:round}.profile{fill:#6e7781;fill-opacity:.12}
.size{fill:none;stroke:#6e7781;stroke-width:1.5}.line{stroke:#bf8700;stroke-width:1.5;stroke-dasharray:5 4}"""


def tera(trial):
    value = (trial["metrics"] or {}).get("FLOPS_per_gpu")
    return None if value is None else value / 1e12


def text(x, y, words, anchor="middle", kind="words"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def measured(x, y, trial, kind="trial"):
    stage = trial["config"].get("zero_optimization", {}).get("stage", 0)
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="9"/>' + text(x, y + 4, stage, kind="stage")


class Picture:
    def __init__(self, study):
        self.trials = study["trials"]
        values = [tera(trial) for trial in self.trials if tera(trial) is not None]
        self.low, self.high = 10 * math.floor(min(values) / 10), 10 * math.ceil(max(values) / 10)
        self.own = next((tera(trial) for trial in self.trials if trial["kind"] == "baseline"), None)
        self.gain = study["study"]["gain"]

    def x(self, i):
        return LEFT + (RIGHT - LEFT) * (i + 0.7) / (len(self.trials) + 0.3)

    def y(self, value):
        return BOTTOM - (value - self.low) * (BOTTOM - TOP) / (self.high - self.low)

    def frame(self):
        profiles = [i for i, trial in enumerate(self.trials) if trial["kind"] == "profile"]
        step = self.x(1) - self.x(0)
        if profiles:
            yield f'<rect class="profile" x="{LEFT}" y="32" width="{len(profiles) * step:.1f}" height="{BOTTOM - 32}"/>'
            yield text(LEFT + len(profiles) * step / 2, 48, "profile")
        for value in range(self.low, self.high + 1, 10):
            y = self.y(value)
            yield f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield text(84, y + 4, value, "end")
        yield text(20, 20, "TFLOP/s per GPU", "start")
        yield text(84, 300, "trial", "end") + text(84, 318, "micro batch", "end")

    def best_so_far(self):
        path, best = "", None
        for i, trial in enumerate(self.trials):
            value = tera(trial)
            if value is None or trial["kind"] == "repeat" or (best is not None and value <= best):
                continue
            path += f"M{self.x(i):.1f} {self.y(value):.1f}" if best is None else f"H{self.x(i):.1f}V{self.y(value):.1f}"
            best = value
        yield f'<path class="best" d="{path}H{RIGHT}"/>'

    def own_configuration(self):
        if self.own is None:
            return
        y = self.y(self.own)
        yield f'<line class="line" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        gain = f': the best is {self.gain["ratio"]:.1f} times as fast' if self.gain else ""
        yield text(RIGHT - 30, y - 12, f"your own configuration{gain}", "end")

    def marks(self):
        for i, trial in enumerate(self.trials):
            x, value = self.x(i), tera(trial)
            if value is not None:
                is_own = trial["config"] == next((t["config"] for t in self.trials if t["kind"] == "baseline"), None)
                yield measured(x, self.y(value), trial, "own" if is_own else "trial")
            elif trial["outcome"] == "out_of_memory":
                yield f'<path class="oom" d="M{x - 6:.1f} 266l12 12m0 -12l-12 12"/>'
            else:
                yield f'<circle class="size" cx="{x:.1f}" cy="272" r="7"/>'
            yield text(x, 300, trial["id"]) + text(x, 318, trial["config"].get("train_micro_batch_size_per_gpu", ""))

    def legend(self):
        yield '<circle class="trial" cx="102" cy="344" r="9"/>' + text(102, 348, 3, kind="stage")
        yield text(118, 348, "measured, at this ZeRO stage", "start")
        yield '<circle class="own" cx="318" cy="344" r="9"/>' + text(332, 348, "your own", "start")
        yield '<path class="oom" d="M402 338l12 12m0 -12l-12 12"/>' + text(422, 348, "out of memory", "start")
        yield '<circle class="size" cx="530" cy="344" r="7"/>' + text(542, 348, "size of the model, not timed", "start")
        yield '<line class="best" x1="724" x2="752" y1="344" y2="344"/>' + text(758, 348, "best so far", "start")

    def svg(self):
        title = f"One search: the metric of each of {len(self.trials)} trials, and the best so far"
        yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 360" width="{WIDTH}" height="360" '
               'role="img" aria-labelledby="title">')
        yield f'<title id="title">{title}</title>\n<style>{STYLE}</style>'
        for part in (self.frame, self.own_configuration, self.best_so_far, self.marks, self.legend):
            yield from part()
        yield "</svg>"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    shown = subprocess.run([BUILD / "dsat-host", "show", sys.argv[1], "--json"], stdout=subprocess.PIPE, check=True)
    print("\n".join(Picture(json.loads(shown.stdout)).svg()))


if __name__ == "__main__":
    main()
