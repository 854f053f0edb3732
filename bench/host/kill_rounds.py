#!/usr/bin/env python3
"""Kills dsat-host with SIGKILL, at random moments and at every named point of its turn, and counts what that costs.

    kill_rounds.py BUILD_DIR [--kills 200] [--points] [--seed N] [--keep]

Each study is killed several times, from the first millisecond on, and then runs to its end. Afterwards: trials that
were finished and are lost, results that were counted twice, processes that are left, folders that neither `resume` nor
a new start takes, and studies whose decisions differ from those of a study that nobody killed. All should be 0."""
import argparse
import itertools
import pathlib
import random
import shutil
import sys
import tempfile
import time

from crash_support import Study, Tally, build_trial, lost_between, wait_until_none

SEARCHERS = ("asha", "binary", "random", "guided", "grid")
CONCURRENCY = (1, 8)
KILLS_A_STUDY = 5
POINTS = ("start.folder", "start.locked", "journal.written", "journal.renamed", "turn.events", "commit.before",
          "commit.after", "turn.before_act", "turn.after_act", "results.file", "close.before_commit", "close.committed")


class Rounds:
    def __init__(self, build, folder, trials=14, ms=10):
        self.build, self.folder = build, pathlib.Path(folder)
        self.trial = build_trial(folder)
        self.trials, self.ms = trials, ms
        self.tally = Tally()
        self.references = {}
        self.number = 0

    def study(self, searcher, at_once):
        self.number += 1
        options = ["--searcher", searcher, "--max-trials", self.trials, "--slots", at_once, "--slots-per-trial", 1,
                   "--max-concurrent-trials", at_once]
        return Study(self.build, self.trial, self.folder / str(self.number), options, ["--ms", self.ms])

    def reference(self, searcher, at_once):
        """Decisions and duration of a study that nobody kills."""
        key = searcher, at_once
        if key not in self.references:
            study = self.study(searcher, at_once)
            begin = time.monotonic()
            status, error = study.finish()
            if status != 0:
                raise RuntimeError(f"the reference of {key} ended with {status}: {error}")
            self.references[key] = study.decisions(), time.monotonic() - begin
        return self.references[key]

    def check_after_kill(self, study, before):
        """After a kill: what had ended is there. Returns what is there now."""
        for process in wait_until_none(study):
            self.tally.wrong("left running", f"{study.folder}: {process}")
        if not study.exists():
            return before
        now = study.trials()
        for trial in lost_between(before, now):
            self.tally.wrong("lost", f"{study.folder}: trial {trial}")
        return now

    def check_end(self, study, reference, before):
        status, error = study.finish()
        if status != 0:
            what = "dead folders" if status is None or status == 2 else "failed"
            return self.tally.wrong(what, f"{study.folder}: {status}: {error.strip()[:300]}")
        for trial in lost_between(before, study.trials()):
            self.tally.wrong("lost", f"{study.folder}: trial {trial}")
        for trial in study.counted_twice():
            self.tally.wrong("counted twice", f"{study.folder}: trial {trial}")
        for process in wait_until_none(study):
            self.tally.wrong("left running", f"{study.folder}: {process}")
        if study.decisions() != reference:
            self.tally.wrong("decisions differ", str(study.folder))
        return None

    def random_kills(self, kills, seed):
        draw = random.Random(seed)
        done = 0
        for searcher, at_once in itertools.cycle(itertools.product(SEARCHERS, CONCURRENCY)):
            if done >= kills:
                return done
            reference, seconds = self.reference(searcher, at_once)
            study, before = self.study(searcher, at_once), []
            for _ in range(KILLS_A_STUDY):
                early = draw.random() < 0.4
                if not study.kill_after(draw.uniform(0, 0.2) if early else draw.uniform(0, seconds * 0.7)):
                    break
                done += 1
                before = self.check_after_kill(study, before)
            self.check_end(study, reference, before)
        return done

    def kills_at_points(self, searchers=("asha", "random"), passings=(1, 4)):
        done = 0
        for point, searcher, at_once, passing in itertools.product(POINTS, searchers, CONCURRENCY, passings):
            reference, _ = self.reference(searcher, at_once)
            study = self.study(searcher, at_once)
            process = study.spawn(DSAT_FAULT=f"{point}:{passing}")
            process.communicate(timeout=600)
            done += process.returncode == -9
            self.check_end(study, reference, self.check_after_kill(study, []))
        return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--points", action="store_true", help="also one kill at every named point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="dsat-kills-")
    rounds = Rounds(arguments.build, folder)
    kills = rounds.random_kills(arguments.kills, arguments.seed)
    print(f"{kills} kills at random, {rounds.number} studies", flush=True)
    if arguments.points:
        print(f"{rounds.kills_at_points()} kills at {len(POINTS)} named points")
    for what in ("lost", "counted twice", "left running", "dead folders", "failed", "decisions differ"):
        print(f"{what:18} {rounds.tally[what]}")
    for line in rounds.tally.lines:
        print("  " + line)
    if not arguments.keep and not rounds.tally:
        shutil.rmtree(folder)
    else:
        print(f"kept in {folder}")
    return 1 if rounds.tally else 0


if __name__ == "__main__":
    sys.exit(main())
