#!/usr/bin/env python3
"""A long study of short trials that misbehave, on a host that is killed: exact accounts, flat memory and descriptors.

    soak.py BUILD_DIR [--trials 2000] [--ms 50] [--slots 16] [--chaos 5] [--kills 3]

--chaos percent of the trials crash, hang or leave a torn result. Every second the host's memory and descriptors are
read. At the end each trial has one outcome that fits what it did, as the ledger has it."""
import argparse
import collections
import json
import pathlib
import signal
import sys
import tempfile
import time

from crash_support import Study, build_trial, wait_until_none


def sample(pid):
    """(resident MB, open descriptors) of a live process, or None."""
    process = pathlib.Path(f"/proc/{pid}")
    try:
        pages = int((process / "statm").read_text().split()[1])
        return pages * 4096 / 1e6, len(list((process / "fd").iterdir()))
    except OSError:
        return None


def run(study, kill_at):
    """Until the study ends or `kill_at` trials have ended in the ledger. Returns status and samples."""
    process, samples = study.spawn(), []
    while process.poll() is None:
        if kill_at and sum(what == "end" for what, _ in study.ledger_lines()) >= kill_at:
            process.send_signal(signal.SIGKILL)
            break
        now = sample(process.pid)
        if now:
            samples.append(now)
        time.sleep(1)
    _, error = process.communicate()
    return process.returncode, samples, error


def accounts(study):
    """Lines of what does not fit; and the outcomes."""
    trials = study.trials()
    ends = collections.Counter(int(trial) for what, trial in study.ledger_lines() if what == "end")
    starts = collections.Counter(int(trial) for what, trial in study.ledger_lines() if what == "start")
    wrong = []
    for trial in trials:
        own, outcome = trial["id"], trial["outcome"]
        if outcome is None:
            wrong.append(f"trial {own} has no outcome")
        elif trial["duplicate_of"] is None and outcome in ("completed", "failed", "timed_out") and starts[own] == 0:
            wrong.append(f"trial {own} {outcome} and never ran")
        elif outcome == "completed" and trial["duplicate_of"] is None and ends[own] != 1:
            wrong.append(f"trial {own} completed and wrote {ends[own]} results")
        elif outcome == "timed_out" and ends[own] != 0:
            wrong.append(f"trial {own} timed out and wrote a result")
    if [trial["id"] for trial in trials] != list(range(len(trials))):
        wrong.append("the ids have gaps")
    return wrong, collections.Counter(trial["outcome"] for trial in trials)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, value in (("trials", 2000), ("ms", 50), ("slots", 16), ("chaos", 5), ("kills", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--searcher", default="random")
    given = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="dsat-soak-")
    options = ["--searcher", given.searcher, "--max-trials", given.trials, "--slots", given.slots,
               "--slots-per-trial", 1, "--max-concurrent-trials", given.slots, "--no-progress-timeout", "2s"]
    # More configurations than trials.
    (pathlib.Path(folder) / "space.json").write_text(json.dumps(
        {"zero_optimization.reduce_bucket_size": [1000000 + 4321 * i for i in range(2 * given.trials)]}))
    options += ["--space", pathlib.Path(folder) / "space.json"]
    if given.searcher == "random":
        options += ["--trials-per-random-config", 1]
    study = Study(given.build, build_trial(folder), pathlib.Path(folder) / "study", options,
                  ["--ms", given.ms, "--chaos", given.chaos])
    begin, phases = time.monotonic(), []
    for kill in range(given.kills + 1):
        last = kill == given.kills
        status, samples, error = run(study, None if last else given.trials * (kill + 1) // (given.kills + 1))
        phases.append(samples)
        print(f"host {kill}: {'ended with ' + str(status) if last else 'killed'}, memory "
              f"{samples[0][0] if samples else 0:.0f} -> {samples[-1][0] if samples else 0:.0f} MB (most "
              f"{max((s[0] for s in samples), default=0):.0f}), "
              f"descriptors most {max((s[1] for s in samples), default=0)}",
              flush=True)
    wrong, outcomes = accounts(study)
    left = wait_until_none(study)
    print(f"{sum(outcomes.values())} trials in {time.monotonic() - begin:.0f} s: {dict(outcomes)}")
    print(f"does not fit       {len(wrong)}\n"
          f"counted twice      {len(study.counted_twice())}\n"
          f"left running       {len(left)}")
    for line in wrong[:20] + ([error.strip()[:300]] if status != 0 else []):
        print("  " + line)
    print(f"kept in {folder}")
    return 1 if wrong or left or study.counted_twice() or status != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
