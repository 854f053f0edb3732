#!/usr/bin/env python3
"""Puts faults into the sources, one at a time, and counts how many of them the tests notice.

  bench/mutation/run.py --random 60 --seed 1 --below sdk host plugins    random changes of these folders
  bench/mutation/run.py --faults                                         the chosen ones of faults.json
  bench/mutation/run.py --random 20 --changed-since main~5               random changes of changed lines alone
  bench/mutation/run.py --report                                         what is known so far

It works on a copy of the committed tree in --work (build/mutation), and writes one line a mutant to results.jsonl
there: a run that is interrupted goes on where it stopped, and a mutant of an unchanged place is not run again. A
mutant that no test can notice, since the program behaves the same, is named with the reason in equivalents.json.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import mutants
import suites

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Only what calculates is optimised, its tests included: the linker may take Eigen's functions from a test's object.
# With the library's assertions a read beyond an array, or of nothing, is seen to be one.
FLAGS = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DDSAT_CALCULATION_FLAGS=-O1",
         *(f"-DCMAKE_{language}_FLAGS_RELWITHDEBINFO=-O0 -D_GLIBCXX_ASSERTIONS" for language in ("C", "CXX")),
         "-DDSAT_BENCH=OFF", "-DDSAT_WEB=OFF", "-DDSAT_UNITY_TESTS=ON"]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0, metavar="N", help="draw N random mutants that compile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--below", nargs="+", default=["sdk", "host", "plugins"], metavar="FOLDER")
    parser.add_argument("--changed-since", metavar="REV", help="only lines that differ from REV")
    parser.add_argument("--faults", nargs="*", metavar="ID", help="the chosen faults, all or these")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--no-e2e", action="store_true", help="unit tests only")
    parser.add_argument("--nearest", action="store_true",
                        help="the tests of the file's folder only; --again asks the rest")
    parser.add_argument("--again", action="store_true", help="run what survived once more: there may be new tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compile side by side")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/mutation")
    parser.add_argument("--report", action="store_true", help="print what results.jsonl holds")
    args = parser.parse_args()
    args.work = args.work.resolve()
    return args


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def changed_lines(revision):
    """Lines that differ from a revision, by path."""
    lines, path = {}, None
    for text in git("diff", "-U0", revision, "HEAD", "--", "*.cc", "*.c").splitlines():
        if text.startswith("+++ "):
            path = text[6:]
        elif match := re.match(r"@@ .* \+(\d+)(?:,(\d+))? @@", text):
            begin, count = int(match[1]), int(match[2] or 1)
            lines.setdefault(path, set()).update(range(begin, begin + count))
    return lines


def candidates(args, root):
    if args.faults is not None:
        chosen = {fault.id: fault for fault in mutants.faults(root, HERE / "faults.json")}
        for name in args.faults or chosen:
            yield chosen[name]
    if args.random:
        folders = tuple(folder.rstrip("/") + "/" for folder in args.below)
        paths = [path for path in git("ls-files", "*.cc", "*.c").split() if path.startswith(folders)]
        changed = changed_lines(args.changed_since) if args.changed_since else None
        paths = [path for path in paths if changed is None or path in changed]
        yield from mutants.draw(root, paths, args.seed, changed)


def prepare(args):
    """A copy of the committed tree, and its build. The old copy is brought to the tree of now."""
    source, build = args.work / "source", args.work / "build"
    if not source.exists():
        args.work.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(source)], check=True)
    subprocess.run(["git", "-C", str(source), "fetch", "-q", str(ROOT), "HEAD"], check=True)
    subprocess.run(["git", "-C", str(source), "reset", "-q", "--hard", "FETCH_HEAD"], check=True)
    trainer = any(folder.startswith("trainer") for folder in args.below)
    flags = FLAGS + [f"-DDSAT_TRAINER={'ON' if trainer else 'OFF'}"]
    if shutil.which("ld.lld"):  # Half of a mutant's time is the linking of its test program.
        flags += [f"-DCMAKE_{kind}_LINKER_FLAGS=-fuse-ld=lld" for kind in ("EXE", "MODULE")]
    subprocess.run(["cmake", "-S", str(source), "-B", str(build), *flags], check=True, stdout=subprocess.DEVNULL)
    return source, suites.Suites(source, build, args.work / "log.txt", args.jobs)


NEAREST = "(only the nearest were asked)"


def asked_of(mutant, tests):
    """Test programs and end-to-end tests that have to notice a mutant: those that a fault names, else its folder's."""
    names = mutant.tests or [*tests.programs(mutant.path),
                             *(f"e2e.{name}" for name in suites.suites_of(mutant.path, suites.E2E))]
    return ([name for name in names if not name.startswith("e2e.")],
            [name for name in names if name.startswith("e2e.")])


def judge(mutant, tests, args, first_run):
    """(verdict, what noticed it): noticed, hung, survived, or does not compile. The nearest tests are asked first."""
    programs, ends = asked_of(mutant, tests)
    room = suites.room_filter(tests.source, mutant.path)
    near, whole = [(program, room) for program in programs if room], [(program, None) for program in programs]
    only_nearest = args.nearest and whole
    rounds = (near or whole[:1]) if only_nearest else near + whole
    for position, (program, cases) in enumerate(rounds):
        if (program, cases) not in tests.usual_s:
            first_run(program, cases)
        if tests.make([program]) != 0:
            return ("does not compile" if position == 0 else "noticed"), program
        if seen := tests.run_program(program, cases):
            return seen
    if only_nearest:
        return "survived", NEAREST
    if ends and not args.no_e2e:
        if tests.make_for_ends() != 0:
            return "does not compile", "e2e"
        if seen := tests.run_ends(ends):
            return seen
    return "survived", ""


def confirmed(tests, by):
    """Whether an end-to-end test that failed with a fault passes without it: a busy machine can fail one too."""
    return tests.make_for_ends() == 0 and tests.run_ends([by.split()[0]]) is None


def read_results(work):
    file = work / "results.jsonl"
    return {row["id"]: row for row in map(json.loads, file.read_text().splitlines())} if file.exists() else {}


def report(results):
    equivalents = json.loads((HERE / "equivalents.json").read_text())
    groups = {}
    for row in results.values():
        if row["verdict"] != "does not compile" and row["id"] not in equivalents:
            kind = "chosen faults" if row["kind"] == "fault" else "random, " + row["path"].split("/")[0]
            groups.setdefault(kind, []).append(row)
    for kind, rows in sorted(groups.items()):
        noticed = sum(row["verdict"] != "survived" for row in rows)
        ends = sum(row["by"].startswith("e2e.") for row in rows)
        print(f"{kind}: {noticed} of {len(rows)} noticed ({100 * noticed / len(rows):.0f} %), "
              f"{ends} by end-to-end tests alone")
        for row in rows:
            if row["verdict"] == "survived":
                print(f"  survived {row['id']} {row['path']}:{row['line']} {row['kind']}: "
                      f"{row['why'] or row['before']} -> {row['after']} {row['by']}")


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background would have its tests ignore it
    args = options()
    if args.report:
        return report(read_results(args.work))
    chosen = candidates(args, ROOT)
    if args.list:
        for mutant, _ in zip(chosen, range(args.random or 1_000_000)):
            before_and_after = mutant.change((ROOT / mutant.path).read_text())
            print(mutant.id, f"{mutant.path}:{mutant.line}", mutant.kind, *before_and_after, sep="  |  ")
        return
    source, tests = prepare(args)
    results, wanted, counted = read_results(args.work), args.random, 0
    for mutant in candidates(args, source):
        if mutant.kind != "fault" and counted == wanted:
            break
        row = results.get(mutant.id)
        if row is None or (args.again and row["verdict"] == "survived"):
            row = run_one(mutant, source, tests, args)
            results[mutant.id] = row
            with open(args.work / "results.jsonl", "a") as file:
                file.write(json.dumps(row) + "\n")
        counted += mutant.kind != "fault" and row["verdict"] != "does not compile"
        print(f"{row['verdict']:17} {row['by']:40} {row['seconds']:4.0f} s  "
              f"{mutant.path}:{mutant.line}  {row['kind']}: {row['after']}", flush=True)
    report(results)


def run_one(mutant, source, tests, args):
    file = source / mutant.path
    text, begun = file.read_text(), time.monotonic()
    before, after = mutant.change(text)

    def first_run(program, cases):
        """A program, or some of its cases, without any fault: it must pass, and its time sets the limits."""
        file.write_text(text)
        if tests.make([program]) != 0 or tests.run_program(program, cases):
            sys.exit(f"run.py: {program} fails without any fault: see {tests.log}")
        file.write_text(mutant.apply(text))

    file.write_text(mutant.apply(text))
    try:
        verdict, by = judge(mutant, tests, args, first_run)
    finally:
        file.write_text(text)
    if by.startswith("e2e.") and verdict != "does not compile" and not confirmed(tests, by):
        sys.exit(f"run.py: {by} fails without any fault: see {tests.log}")
    return {"id": mutant.id, "path": mutant.path, "line": mutant.line, "kind": mutant.kind,
            "before": before, "after": after,
            "why": mutant.why, "verdict": verdict, "by": by, "seconds": time.monotonic() - begun}


if __name__ == "__main__":
    main()
