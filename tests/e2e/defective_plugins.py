"""Runs studies with plugins that have one defect each, isolated and in process, and says what became of them.

    DSAT_BUILD_DIR=build/release python3 tests/e2e/defective_plugins.py [NAME...]

prints a line for each: what should happen, what did; then the sums. Ends with 1 if one of them is not as stated.

Outcomes, the same words for both ways to run:
  fine    the study goes on to its end: status 0
  ends    status 4; one line names plugin and call; the best so far is there
  fails   status 4 before any trial of the search has run; at create there is no study yet
  hangs   it does not answer: two interrupts end dsat-host within a second, status 3
  -       not tried: no process survives this by itself
A study that did not go on to its end is taken over by another searcher (`resume --searcher random`): status 0, where
there is one.
Each is run once more with trials that ignore TERM, and interrupted twice when its defect has shown: the seconds from
the second interrupt to the end, unless it ended by itself before.
"""
import collections
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["DSAT_BUILD_DIR"]).resolve()
HOST = BUILD / "dsat-host"
PLUGIN = BUILD / "tests/fixture-plugins/libdefective.so"
TRIAL = pathlib.Path(__file__).resolve().parents[1] / "fixtures/protocol_trial.py"
CALL_LIMIT_S = 2  # of those that never answer; the others have time on a busy machine
NEVER_ANSWER = ("loop", "sleep", "stop")
SECOND_INTERRUPT_S = 1.0
HOW_TO_END = b"the same signal again ends dsat-host at once"

# NAME: (isolated, in process)
DEFECTS = {
    "none": ("fine", "fine"),
    "segv": ("ends", "ends"), "abort": ("ends", "ends"), "stack": ("ends", "ends"), "division": ("ends", "ends"),
    "illegal": ("ends", "ends"), "bus": ("ends", "ends"), "throw": ("ends", "ends"), "double_free": ("ends", "ends"),
    "segv_in_thread": ("ends", "ends"), "orphan": ("ends", "-"),
    "exit0": ("ends", "ends"), "exit3": ("ends", "ends"), "exit_in_thread": ("ends", "ends"),
    "own_handler": ("ends", "ends"), "segv_exit": ("ends", "ends"), "exit0_exit": ("ends", "ends"),
    "segv_create": ("fails", "fails"), "segv_start": ("fails", "fails"), "exit0_start": ("fails", "fails"),
    "fails_start": ("fails", "fails"),
    "segv_once": ("fine", "ends"), "exit0_once": ("fine", "ends"), "stack_once": ("fine", "ends"),
    "segv_destroy": ("fine", "ends"),
    "underscore_exit": ("ends", "-"), "kill": ("ends", "-"), "stop": ("ends", "-"), "alarm": ("ends", "-"),
    "loop": ("ends", "hangs"), "sleep": ("ends", "hangs"), "loop_blocked": ("ends", "hangs"),
    "loop_ignored": ("ends", "hangs"), "loop_start": ("fails", "hangs"), "loop_once": ("fine", "hangs"),
    "loop_destroy": ("fine", "hangs"),
    "memory": ("ends", "-"), "close_all": ("ends", "-"), "write_all": ("ends", "-"), "children": ("fine", "-"),
    "thread": ("fine", "fine"), "descriptors": ("fine", "fine"), "surroundings": ("fine", "-"),
    "null_host": ("fine", "fine"), "null_request": ("fine", "fine"), "null_id": ("fine", "fine"),
    "null_text": ("fine", "fine"), "small_request": ("fine", "fine"), "no_json": ("fine", "fine"),
    "deep": ("fine", "fine"), "huge": ("fine", "fine"), "huge_size": ("fine", "fine"), "million": ("fine", "fine"),
    "unknown_trials": ("fine", "fine"), "profile": ("fine", "fine"), "other_thread": ("fine", "fine"),
    "late": ("fine", "fine"), "long_note": ("fine", "fine"), "terminal_note": ("fine", "fine"),
    "no_utf8": ("fine", "fine"), "log_flood": ("fine", "fine"), "print_flood": ("fine", "fine"),
    "fails": ("ends", "ends"), "fails_silently": ("ends", "ends"), "fails_oddly": ("ends", "ends"),
    "finish_twice": ("fine", "fine"), "random": ("fine", "fine"),
}
if "DSAT_SANITIZE" in os.environ:
    DEFECTS["segv_in_thread"] = ("ends", "-")  # a crash in no known call is reported by the sanitizer, which exits
    DEFECTS["memory"] = ("-", "-")  # a sanitizer lifts the limit, and the plugin would take the machine's
# A sample for every day: one of each kind.
SAMPLE = ["none", "segv", "segv_in_thread", "exit0", "segv_once", "sleep", "loop_ignored", "memory", "null_text",
          "deep", "late", "terminal_note", "fails"]


def start(name, isolated, folder, *trial_options):
    (folder / "ds_config.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 1}))
    way = [] if isolated else ["--isolation", "none"]
    if isolated and name.startswith(NEVER_ANSWER):
        way += ["--plugin-timeout", f"{CALL_LIMIT_S}s"]
    arguments = [HOST, "--searcher", PLUGIN, "--defect", name, "--marker", folder / "marker", *way, "--no-baseline",
                 "--finals", "0", "--profile-trials", "1", "--metric", "throughput", "--output-dir", "run", "--",
                 sys.executable, "-S", "-E", TRIAL, "--deepspeed_config", "ds_config.json", *trial_options]
    # A shell that runs this in its background has it ignore SIGINT, and its children as well.
    return subprocess.Popen(list(map(str, arguments)), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def wait_until_it_hangs(process, folder, name):
    """Its trials have ended and it takes no event any more: its processor time, or nothing, is all that moves."""
    wanted = 0 if name.endswith("_start") else 5 if name.endswith("_destroy") else 3
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        done = len(list((folder / "run/trials").glob("*/exit.json"))) if (folder / "run/trials").exists() else 0
        if done >= wanted and (folder / "run").exists():
            time.sleep(1.5)  # nothing says that a loop has begun
            return
        time.sleep(0.05)


def read_until(stream, text, seconds):
    """What comes in so many seconds, or up to the text."""
    read, end = b"", time.monotonic() + seconds
    while text not in read and select.select([stream], [], [], max(0, end - time.monotonic()))[0]:
        some = os.read(stream.fileno(), 65536)
        if not some:
            break
        read += some
    return read


def interrupt_twice(process, patience_s):
    """Seconds from the second interrupt to the end, and what was printed before that."""
    process.send_signal(signal.SIGINT)
    printed = read_until(process.stderr, HOW_TO_END, patience_s)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
    return time.monotonic() - began, printed


def seconds_to_interrupt(name, isolated):
    """From the second interrupt to the end; None: the study had ended before."""
    with tempfile.TemporaryDirectory(prefix="dsat-defect-") as folder:
        folder = pathlib.Path(folder)
        process = start(name, isolated, folder, "--misbehave", "ignore_term_later")
        wait_until_it_hangs(process, folder, "" if name.endswith("_destroy") else name)
        seconds = None if process.poll() is not None else interrupt_twice(process, patience_s=0.3)[0]
        process.communicate()
        for pid in left_behind(folder):
            os.kill(pid, signal.SIGKILL)
        return seconds


def is_taken_over(folder):
    """Does another searcher go on with all that there is?"""
    resumed = subprocess.run([HOST, "resume", "run", "--searcher", "random", "--max-trials", "6", "--quiet"],
                             cwd=folder, capture_output=True, text=True, timeout=240)
    return resumed.returncode == 0


def best_is_kept(folder):
    """Is there a completed trial in the journal, from which the best is known?"""
    shown = subprocess.run([HOST, "show", "run", "--json"], cwd=folder, capture_output=True, text=True)
    trials = json.loads(shown.stdout)["trials"] if shown.returncode == 0 else []
    return any(trial["outcome"] == "completed" and trial["kind"] != "profile" for trial in trials)


def left_behind(folder):
    """Processes of the study; those that die with their host get a moment to go."""
    deadline = time.monotonic() + 5
    while processes_in(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return processes_in(folder)


def processes_in(folder):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder).encode() in entry.read_bytes() + (entry.parent / "cmdline").read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            pass
    return found


def run(name, isolated):
    """What should have happened, what did, and details."""
    wanted = DEFECTS[name][0 if isolated else 1]
    with tempfile.TemporaryDirectory(prefix="dsat-defect-") as folder:
        folder = pathlib.Path(folder)
        process = start(name, isolated, folder)
        seconds, printed = None, b""
        if wanted == "hangs":
            wait_until_it_hangs(process, folder, name)
            seconds, printed = interrupt_twice(process, patience_s=20)
        try:
            out, err = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return wanted, "no end", ""
        err = (printed + err).decode(errors="replace")
        best = best_is_kept(folder)
        names_it = any("plugin" in line and ("defective" in line or "thread" in line) for line in err.splitlines())
        escapes = b"\x1b" in out + err.encode() and name != "print_flood"
        status = process.returncode
        if escapes:
            got = "escapes in its output"
        elif status == 0 and best:
            got = "fine"
        elif status == 4 and names_it:
            got = "ends" if best else "fails"
        elif status == 3 and seconds is not None:
            got = "hangs" if seconds <= SECOND_INTERRUPT_S else f"ends {seconds:.1f} s after the second interrupt"
            if HOW_TO_END not in printed:
                got = "ends, and has not shown how"
        else:
            got = f"status {status}"
        has_study = (folder / "run").exists() or not name.endswith("_create")
        if got in ("ends", "fails", "hangs") and has_study and not is_taken_over(folder):
            got += ", is not taken over"
        left = left_behind(folder)
        if left:
            got += f", leaves {len(left)} processes"
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        lines = [line for line in err.splitlines() if line.startswith("dsat-host:")]
        return wanted, got, lines[-1] if lines else ""


def main(names):
    names = names or list(DEFECTS)
    wrong, late, sums, interrupts = 0, 0, collections.Counter(), []
    for name in names:
        for isolated in (True, False):
            way = "isolated" if isolated else "in process"
            if DEFECTS[name][0 if isolated else 1] == "-":
                sums[way, "-"] += 1
                continue
            wanted, got, line = run(name, isolated)
            sums[way, got] += 1
            seconds = seconds_to_interrupt(name, isolated)
            interrupts += [] if seconds is None else [seconds]
            late += seconds is not None and seconds > SECOND_INTERRUPT_S
            wrong += wanted != got
            mark = "    " if wanted == got else "NOT "
            took = "     " if seconds is None else f"{seconds:.2f}s"
            print(f"{mark}{name:16} {way:10}  {got:8} {took} {line[:140]}", flush=True)
    for way in ("isolated", "in process"):
        words = [f"{count} {got}" for (whose, got), count in sorted(sums.items()) if whose == way]
        print(f"{way:10}  {', '.join(words)}, of {len(names)}")
    print(f"second interrupt: {len(interrupts)} studies ended by it, {max(interrupts, default=0):.2f} s at most, "
          f"{late} later than {SECOND_INTERRUPT_S} s")
    print(f"{sum(sums.values()) - sums['in process', '-']} studies: {wrong} not as stated")
    return 1 if wrong or late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
