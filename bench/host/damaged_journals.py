#!/usr/bin/env python3
"""Damages journals at random and asks every command that opens one what it says:
none may crash, each error is one line.

    damaged_journals.py BUILD_DIR [--journals 250] [--seed N]

Bytes are flipped, files cut, pages emptied, rows deleted, values replaced by others of another type. Prints how many
journals were sound, were refused in one line, went on by themselves, and went on after `check --repair`."""
import argparse
import collections
import pathlib
import random
import shutil
import signal
import sqlite3
import sys
import tempfile

from crash_support import Study, Tally, build_trial

VALUES = ("[]", "null", "{}", "7", '"text"', "", "{", "-1", '{"a": [1, {"b": null}]}', '[{"op": "create_trial"}]',
          '{"event": "exited", "trial": 99}', "9" * 40, "running", "delivered", "x" * 5000)


def flip_bytes(draw, file):
    data = bytearray(file.read_bytes())
    for _ in range(draw.choice((1, 1, 5, 50))):
        data[draw.randrange(len(data))] = draw.randrange(256)
    file.write_bytes(data)


def cut(draw, file):
    data = file.read_bytes()
    file.write_bytes(data[:draw.randrange(len(data))])


def empty_a_page(draw, file):
    data = bytearray(file.read_bytes())
    page = draw.randrange(max(1, len(data) // 4096)) * 4096
    data[page:page + 4096] = bytes(min(4096, len(data) - page))
    file.write_bytes(data)


def with_sql(change):
    def damage(draw, file):
        database = sqlite3.connect(file)
        change(draw, database)
        database.commit()
        database.close()
    return damage


def rowids(database, table):
    key = {"meta": "key", "trials": "id", "events": "seq", "states": "seq"}[table]
    return key, [row[0] for row in database.execute(f"SELECT {key} FROM {table}")]


def delete_rows(draw, database):
    table = draw.choice(("meta", "trials", "events"))
    key, ids = rowids(database, table)
    for row in draw.sample(ids, min(len(ids), draw.choice((1, 1, 3)))):
        database.execute(f"DELETE FROM {table} WHERE {key} = ?", (row,))


def change_value(draw, database):
    table = draw.choice(("meta", "trials", "trials", "events", "events", "states"))
    key, ids = rowids(database, table)
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    value = draw.choice((draw.choice(VALUES), None, draw.randrange(-5, 2**40), b"\xff\x00bytes"))
    if ids:
        try:
            database.execute(f"UPDATE {table} SET {draw.choice(columns)} = ? WHERE {key} = ?",
                             (value, draw.choice(ids)))
        except sqlite3.Error:
            pass  # a constraint that the table itself keeps


def change_in_json(draw, database):
    table, column = draw.choice((("meta", "value"), ("trials", "config"), ("trials", "end"), ("events", "event"),
                                 ("events", "ops")))
    key, ids = rowids(database, table)
    row = draw.choice(ids)
    text = database.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (row,)).fetchone()[0] or ""
    places = [i for i, letter in enumerate(text) if letter.isdigit()] or [0]
    at = draw.choice(places)
    text = text[:at] + draw.choice(("-1", "null", '"x"', "99999999999", "[]", "")) + text[at + 1:]
    database.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (text, row))


DAMAGES = (flip_bytes, flip_bytes, cut, empty_a_page, with_sql(delete_rows), with_sql(change_value),
           with_sql(change_value), with_sql(change_in_json))


class Damaged:
    def __init__(self, build, folder):
        self.build, self.folder = build, pathlib.Path(folder)
        self.trial = build_trial(folder)
        self.tally, self.counts = Tally(), collections.Counter()
        self.bases = [self.base(name, *how) for name, how in
                      (("ended", ("asha", None)), ("killed", ("random", "turn.before_act:8")),
                       ("early", ("binary", "commit.after:3")))]

    def study(self, name, searcher):
        return Study(self.build, self.trial, self.folder / name,
                     ["--searcher", searcher, "--max-trials", 10, "--slots", 2, "--slots-per-trial", 1], ["--ms", 1])

    def base(self, name, searcher, fault):
        study = self.study(name, searcher)
        process = study.spawn(**({"DSAT_FAULT": fault} if fault else {}))
        process.communicate(timeout=300)
        wanted = -signal.SIGKILL if fault else 0
        if process.returncode != wanted:
            raise RuntimeError(f"the study {name} ended with {process.returncode}, not with {wanted}")
        return name, searcher

    def ask(self, study, damage, *arguments):
        """One command; its status, or None where it crashed."""
        asked = study.command(*arguments)
        what = f"{damage}: {' '.join(arguments)}"
        if asked.returncode < 0 or asked.returncode > 4:
            self.tally.wrong("crashed", f"{what}: {asked.returncode}")
            return None
        lines = [line for line in asked.stderr.splitlines() if line.startswith("dsat-host:") or "error" in line.lower()]
        if asked.returncode in (2, 4) and arguments[0] != "resume" and len(asked.stderr.strip().splitlines()) != 1:
            self.tally.wrong("not one line", f"{what}: {asked.stderr[:300]}")
        if "json.exception" in asked.stderr or "defect of dsat-host" in asked.stderr:
            self.tally.wrong("unclear", f"{what}: {lines[:2]}")
        return asked.returncode

    def round(self, number, seed):
        draw = random.Random(seed * 100003 + number)
        name, searcher = self.bases[number % len(self.bases)]
        study = self.study(f"{name}-{number}", searcher)
        shutil.copytree(self.folder / name / "run", study.run)
        damage = draw.choice(DAMAGES)
        text = f"{number} {damage.__name__} of {name}"
        damage(draw, study.run / "dsat.db")
        self.ask(study, text, "show", "run")
        self.ask(study, text, "best", "run")
        sound = self.ask(study, text, "check", "run") == 0
        went_on = self.ask(study, text, "resume", "run", "--quiet") in (0, 1)
        self.counts["sound to check" if sound else "found by check"] += 1
        if went_on:
            self.counts["went on by itself"] += 1
        else:
            self.counts["refused by resume"] += 1
            if self.ask(study, text, "check", "run", "--repair") == 0:
                again = self.ask(study, text, "resume", "run", "--quiet")
                self.counts["went on after --repair" if again in (0, 1) else "mended, and resume refuses it"] += 1
                if again not in (0, 1):
                    self.counts["damage of those: " + damage.__name__] += 1
            else:
                self.counts["cannot be mended"] += 1
        shutil.rmtree(study.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--journals", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="dsat-damage-")
    damaged = Damaged(arguments.build, folder)
    for number in range(arguments.journals):
        damaged.round(number, arguments.seed)
    print(f"{arguments.journals} damaged journals")
    for what in ("crashed", "not one line", "unclear"):
        print(f"{what:32} {damaged.tally[what]}")
    for what, count in sorted(damaged.counts.items()):
        print(f"{what:32} {count}")
    for line in damaged.tally.lines:
        print("  " + line)
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if damaged.tally else 0


if __name__ == "__main__":
    sys.exit(main())
