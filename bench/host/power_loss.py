#!/usr/bin/env python3
"""Cuts the power: rebuilds a study's folder as a disk would hold it at some moment, without what was not synced.

    power_loss.py BUILD_DIR [--rounds 30] [--seed N]

A library records every write, sync and rename of dsat-host (power_loss_record.c). A round takes a recorded study and a
moment of it, and rebuilds the folder as of then in one of three ways: nothing survives but what was synced; names
survive and unsynced bytes do not; each of both survives by chance. Then the study is resumed, or started again where
nothing of it survived. What the journal had when its last sync returned must be there, and the decisions must equal
those of a study without a power loss."""
import argparse
import collections
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from crash_support import HERE, Study, Tally, build_trial, lost_between

WAYS = ("synced", "names", "chance")


class Inode:
    def __init__(self):
        self.now, self.synced = bytearray(), b""


class Disk:
    """A folder as programs see it, and what of it is safe.

    A name is safe once its folder was synced after it changed.
    """

    def __init__(self, root):
        self.root = root
        self.files, self.safe_files = {}, {}
        self.folders, self.safe_folders = {root}, {root}

    def apply(self, kind, number, path, data):
        if kind == "create":
            self.files[path] = Inode()
        elif kind == "mkdir":
            self.folders.add(path)
        elif kind == "write":
            now = self.files.setdefault(path, Inode()).now
            now.extend(bytes(max(0, number - len(now))))
            now[number:number + len(data)] = data
        elif kind == "truncate":
            now = self.files.setdefault(path, Inode()).now
            now.extend(bytes(max(0, number - len(now))))
            del now[number:]
        elif kind == "unlink":
            self.files.pop(path, None)
            self.folders.discard(path)
        elif kind == "rename":
            target = data.decode()
            if path in self.files:
                self.files[target] = self.files.pop(path)
        elif kind == "sync" and path in self.folders:
            self.sync_folder(path)
        elif kind == "sync" and path in self.files:
            self.files[path].synced = bytes(self.files[path].now)

    def sync_folder(self, folder):
        def inside(path):
            return str(pathlib.Path(path).parent) == folder
        self.safe_files = {p: i for p, i in self.safe_files.items() if not inside(p)}
        self.safe_files.update({p: i for p, i in self.files.items() if inside(p)})
        self.safe_folders.update(p for p in self.folders if inside(p))

    def after_power_loss(self, way, draw):
        """{path: bytes} of what is left."""
        safe_names = self.safe_files if way == "synced" or (way == "chance" and draw.random() < 0.5) else self.files
        left = {}
        for path, inode in safe_names.items():
            keeps = way == "chance" and draw.random() < 0.5
            left[path] = bytes(inode.now) if keeps else inode.synced
        return left


def read_log(file):
    """(kind, number, path, data) of each record."""
    raw = file.read_bytes()
    at = 0
    while at < len(raw):
        end = raw.find(b"\n", at)
        if end < 0:
            return
        kind, number, length, path = raw[at:end].decode().split(" ", 3)
        at = end + 1 + int(length)
        if at > len(raw):
            return
        yield kind, int(number), path, raw[end + 1:at]


class PowerLoss:
    def __init__(self, build, folder, trials=12):
        self.build, self.folder, self.trials = build, pathlib.Path(folder), trials
        self.trial = build_trial(folder)
        self.library = self.folder / "record.so"
        source = HERE / "power_loss_record.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(self.library), str(source), "-ldl"], check=True)
        self.tally, self.counts = Tally(), collections.Counter()

    def study(self, name, searcher, at_once):
        options = ["--searcher", searcher, "--max-trials", self.trials, "--slots", at_once, "--slots-per-trial", 1]
        return Study(self.build, self.trial, self.folder / name, options, ["--ms", 5])

    def recorded(self, searcher, at_once):
        """A whole study: its log, and its decisions."""
        study = self.study(f"{searcher}-{at_once}", searcher, at_once)
        log = study.folder / "log"
        process = study.spawn(LD_PRELOAD=str(self.library), POWER_LOSS_DIR=str(study.run), POWER_LOSS_LOG=str(log))
        _, error = process.communicate(timeout=300)
        if process.returncode != 0:
            raise RuntimeError(f"the recorded study ended with {process.returncode}: {error}")
        return study, list(read_log(log)), study.decisions()

    def rebuild(self, study, left):
        shutil.rmtree(study.run, ignore_errors=True)
        for path, data in left.items():
            if path.endswith("-shm"):
                continue  # memory, by another name
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(path).write_bytes(data)
        study.ledger.unlink(missing_ok=True)

    def known_trials(self, study, records, moment):
        """The journal's trials when its last sync before that moment returned: those that must survive."""
        syncs = [i for i in range(moment) if records[i][0] == "sync" and "dsat.db" in records[i][2]]
        if not syncs:
            return []
        disk = Disk(str(study.run))
        for record in records[:syncs[-1] + 1]:
            disk.apply(*record)
        self.rebuild(study, {path: bytes(inode.now) for path, inode in disk.files.items()})
        return study.trials() if study.exists() else []

    def round(self, study, records, decisions, draw):
        moment, way = draw.randrange(1, len(records)), draw.choice(WAYS)
        where = f"{study.folder.name}, record {moment} of {len(records)}, {way}"
        before = self.known_trials(study, records, moment)
        disk = Disk(str(study.run))
        for record in records[:moment]:
            disk.apply(*record)
        self.rebuild(study, disk.after_power_loss(way, draw))
        self.counts["started anew" if not study.exists() else "resumed"] += 1
        if before and not study.exists():
            return self.tally.wrong("lost", f"{where}: the whole study")
        if study.exists():
            for trial in lost_between(before, study.trials()):
                self.tally.wrong("lost", f"{where}: trial {trial}")
        status, error = study.finish()
        if status != 0:
            return self.tally.wrong("dead folders", f"{where}: {status}: {error.strip()[:300]}")
        if study.decisions() != decisions:
            self.tally.wrong("decisions differ", where)
        return None

    def rounds(self, count, seed):
        draw = random.Random(seed)
        studies = (("asha", 1), ("random", 4), ("binary", 2))
        recorded = [self.recorded(searcher, at_once) for searcher, at_once in studies]
        for number in range(count):
            self.round(*recorded[number % len(recorded)], draw)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="dsat-power-")
    losses = PowerLoss(arguments.build, folder)
    losses.rounds(arguments.rounds, arguments.seed)
    print(f"{arguments.rounds} power losses: {dict(losses.counts)}")
    for what in ("lost", "dead folders", "decisions differ"):
        print(f"{what:18} {losses.tally[what]}")
    for line in losses.tally.lines:
        print("  " + line)
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if losses.tally else 0


if __name__ == "__main__":
    sys.exit(main())
