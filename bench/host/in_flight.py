#!/usr/bin/env python3
"""How many of its slots a searcher keeps busy, in the simulator's time.

    in_flight.py BUILD_DIR [--slots 256] [--trials 2048] [--searcher guided] [-- OPTION...]

The cluster of examples/sim/256-gpus-in-32-trials-gpt2-xl.json with a node a slot. Prints the trials of the search that
ran at once, at most and on average, and the same for each quarter of the search."""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

SCENARIO = pathlib.Path(__file__).resolve().parents[2] / "examples/sim/256-gpus-in-32-trials-gpt2-xl.json"


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def mean_between(spans, begin, end):
    return sum(max(0, min(last, end) - max(first, begin)) for first, last in spans) / (end - begin)


def most_at_once(spans):
    now = most = 0
    # At one moment ends come before starts.
    for _, change in sorted([(first, 1) for first, _ in spans] + [(last, -1) for _, last in spans]):
        now += change
        most = max(most, now)
    return most


def search_spans(build, given, folder):
    """Begin and end of each trial of the search."""
    scenario = json.loads(SCENARIO.read_text())
    scenario["cluster"]["nodes"] = given.slots
    (folder / "cluster.json").write_text(json.dumps(scenario))
    host = str(pathlib.Path(build).resolve() / "dsat-host")
    subprocess.run([host, "--runner", "sim", "--sim", "cluster.json", "--searcher", given.searcher, "--max-trials",
                    str(given.trials), "--max-concurrent-trials", str(given.slots), "--no-baseline", "--finals", "0",
                    "--output-dir", "run", "--quiet", *given.options],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    shown = subprocess.run([host, "show", "run", "--json"], cwd=folder, check=True, capture_output=True, text=True)
    return [(seconds(trial["started_at"]), seconds(trial["ended_at"])) for trial in json.loads(shown.stdout)["trials"]
            if trial["kind"] == "search" and trial["started_at"] and trial["ended_at"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--trials", type=int, default=2048)
    parser.add_argument("--searcher", default="guided")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:end], argparse.Namespace(options=words[end + 1:]))
    with tempfile.TemporaryDirectory(prefix="dsat-in-flight-") as folder:
        spans = search_spans(given.build, given, pathlib.Path(folder))
    begin, end = min(first for first, _ in spans), max(last for _, last in spans)
    print(f"{len(spans)} trials of the search in {end - begin:.0f} s on {given.slots} slots: at once at most "
          f"{most_at_once(spans)}, on average {mean_between(spans, begin, end):.1f}")
    quarter = (end - begin) / 4
    for i in range(4):
        mean = mean_between(spans, begin + i * quarter, begin + (i + 1) * quarter)
        print(f"  quarter {i + 1}: {mean:.1f} on average")
    return 0


if __name__ == "__main__":
    sys.exit(main())
