#!/usr/bin/env python3
"""What `dsat-host serve` costs a study that runs, and how soon a page shows what happened.

    bench/host/serve_cost.py [BUILD_DIR] [--pairs N] [--readers N] [--trials N] [--renice N]

Tunes a command that sleeps, 16 trials at a time: once alone and once served to readers that ask as the page does, in
pairs whose order alternates. Prints wall time and dsat-host's own processor time of both, and the median of the pairs'
differences; then opens the page of one more study in Chromium and prints how long after the journal's time of a trial's
end the page shows it. Readers have a lower priority: theirs are other machines.
On a machine that is not quiet, --renice -16 (as root) gives all that is measured the processors first.
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from datetime import datetime

ROOT = pathlib.Path(__file__).resolve().parents[2]
AT_ONCE = 16
ASK_EVERY_S = 0.25  # web/src/main.ts: kLiveMs


class Study:
    """One study of `trials` trials, 16 at a time; started in the constructor."""

    def __init__(self, build, cwd, name, trials, sleep_s=1.0):
        self.build, self.cwd, self.name = build, cwd, name
        trial = ["sh", "-c", f'sleep {sleep_s}; exec "$0" "$@"', str(build / "bench/instant_trial"),
                 "--deepspeed_config", "ds_config.json"]
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(
            [build / "dsat-host", "--searcher", "random", "--max-trials", str(trials), "--slots", str(AT_ONCE),
             "--slots-per-trial", "1", "--max-concurrent-trials", str(AT_ONCE), "--device-memory", "100GB",
             "--no-probe", "--quiet", "--output-dir", name, "--", *trial],
            cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def runs(self):
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None

    def wait_until_it_has_a_journal(self):
        show = [self.build / "dsat-host", "show", self.name]
        while subprocess.run(show, cwd=self.cwd, capture_output=True, check=False).returncode != 0:
            if not self.runs():
                raise SystemExit(f"{self.name} ended before it began")

    def end(self):
        """Wall and processor seconds; those of dsat-host alone, without its trials."""
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - self.begin
        cpu = cpu_seconds(self.process.pid)
        if self.process.wait() not in (0, 1):
            raise SystemExit(f"{self.name} ended with {self.process.returncode}")
        return wall, cpu

    def trials(self):
        shown = subprocess.run([self.build / "dsat-host", "show", self.name, "--json"],
                               cwd=self.cwd, capture_output=True, check=True)
        return json.loads(shown.stdout)["trials"]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, build, cwd, name):
        self.process = subprocess.Popen([build / "dsat-host", "serve", name],
                                        cwd=cwd, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+", self.process.stdout.readline()).group()

    def end(self):
        cpu = cpu_seconds(self.process.pid)
        self.process.terminate()
        self.process.wait()
        return cpu


class Reader:
    """Asks over one connection; a new one where the server has closed it, as a browser does."""

    def __init__(self, url):
        self.url, self.tags, self.writer, self.counts = url, {}, None, {}

    async def follow(self, until):
        while not until.is_set():
            for name in ("studies.json", "study/0.json"):
                try:
                    status = await self.ask(name)
                except (ConnectionError, asyncio.IncompleteReadError):
                    status, self.writer = "asked again", None
                self.counts[status] = self.counts.get(status, 0) + 1
            await asyncio.sleep(ASK_EVERY_S)

    async def ask(self, name):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.url.hostname, self.url.port)
        tag = f"If-None-Match: {self.tags[name]}\r\n" if name in self.tags else ""
        self.writer.write(f"GET {self.url.path}{name} HTTP/1.1\r\nHost: {self.url.netloc}\r\n"
                          f"Accept-Encoding: gzip\r\n{tag}\r\n".encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        status = int(head.split()[1])
        if status == 200:
            await self.reader.readexactly(int(fields["Content-Length"]))
            self.tags[name] = fields["ETag"]
        if fields.get("Connection") == "close":
            self.writer.close()
            self.writer = None
        return status


def be_readers(url, number, until, counted):
    os.nice(5)
    readers = [Reader(urllib.parse.urlsplit(url)) for _ in range(number)]

    async def follow():
        await asyncio.gather(*(reader.follow(until) for reader in readers))

    asyncio.run(follow())
    statuses = sorted({status for reader in readers for status in reader.counts}, key=str)
    counted.put({status: sum(reader.counts.get(status, 0) for reader in readers) for status in statuses})


def run_alone(build, cwd, name, options):
    study = Study(build, cwd, name, options.trials)
    study.wait_until_it_has_a_journal()  # as the served one
    return (*study.end(), None, None)


def run_served(build, cwd, name, options):
    study = Study(build, cwd, name, options.trials)
    study.wait_until_it_has_a_journal()
    server = Server(build, cwd, name)
    until, counted = multiprocessing.Event(), multiprocessing.Queue()
    readers = multiprocessing.Process(target=be_readers, args=(server.url, options.readers, until, counted))
    readers.start()
    wall, cpu = study.end()
    until.set()
    counts = counted.get(timeout=60)
    readers.join()
    return wall, cpu, server.end(), counts


WATCH = """(() => { window.seen = {};
  document.querySelector('table.trials thead th button').click();
  const look = () => { for (const row of document.querySelectorAll('table.trials tbody tr[id^=trial-]')) {
      const id = row.id.slice(6), text = row.cells[4].innerText;
      if (text !== 'running' && text !== 'waiting' && !(id in window.seen)) window.seen[id] = Date.now(); } };
  new MutationObserver(look).observe(document.querySelector('table.trials tbody'), {childList: true, subtree: true});
  look(); })()"""


def renice(niceness):
    """Of all threads that came of this program; the browser sets priorities of its own."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    family = {os.getpid()}
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    for process in family:
        try:
            for thread in pathlib.Path(f"/proc/{process}/task").iterdir():
                os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)
        except (FileNotFoundError, ProcessLookupError):
            continue


def follow_in_a_page(build, cwd, options):
    """Seconds from a trial's end in the journal until the page shows it."""
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    import browser  # pylint: disable=import-outside-toplevel
    if not browser.PROGRAM:
        return None
    page = browser.Browser()  # first: it takes a while to start
    study = Study(build, cwd, "followed", 4 * options.trials)
    study.wait_until_it_has_a_journal()
    server = Server(build, cwd, "followed")
    try:
        page.open(server.url)
        page.run(WATCH)
        if options.renice:
            renice(options.renice)
        from_now_on = time.time()
        study.end()
        page.wait_for("!document.querySelector('#live').classList.contains('live')")
        seen = page.run("window.seen")
    finally:
        page.close()
        server.end()
    ends = {str(trial["id"]): datetime.fromisoformat(trial["ended_at"].replace("Z", "+00:00")).timestamp()
            for trial in study.trials() if trial["ended_at"]}
    return sorted(seen[id] / 1e3 - end for id, end in ends.items() if end > from_now_on and id in seen)


def print_pairs(pairs, options):
    alone, served = zip(*pairs)
    print(f"{options.trials} trials of a second, {AT_ONCE} at a time; {len(pairs)} pairs; "
          f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for index, name in enumerate(("wall time", "dsat-host's processor time")):
        of = lambda runs: [run[index] for run in runs]
        apart = [b[index] - a[index] for a, b in pairs]
        print(f"{name:28} alone {statistics.median(of(alone)):7.2f} s "
              f"({min(of(alone)):.2f} to {max(of(alone)):.2f}), "
              f"served {statistics.median(of(served)):7.2f} s, "
              f"difference {statistics.median(apart):+.2f} s ({min(apart):+.2f} to {max(apart):+.2f})")
    print(f"{'the server':28} {statistics.median(run[2] for run in served):.2f} s of a processor; "
          f"answers to {options.readers} readers: " + ", ".join(str(run[3]) for run in served))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", nargs="?", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--trials", type=int, default=160)
    parser.add_argument("--renice", type=int, default=0)
    options = parser.parse_args()
    build = options.build.resolve()
    if options.renice:
        os.setpriority(os.PRIO_PROCESS, 0, options.renice)  # what is started inherits it
    with tempfile.TemporaryDirectory() as folder:
        cwd = pathlib.Path(folder)
        (cwd / "ds_config.json").write_text('{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}')
        pairs = []
        for pair in range(options.pairs):
            runs = [("alone", run_alone), ("served", run_served)]
            in_turn = runs if pair % 2 == 0 else runs[::-1]
            made = {name: run(build, cwd, f"{name}-{pair}", options) for name, run in in_turn}
            pairs.append((made["alone"], made["served"]))
        if pairs:
            print_pairs(pairs, options)
        delays = follow_in_a_page(build, cwd, options)
    if delays is None:
        print("no Chromium: nothing was followed in a page")
    elif not delays:
        print("the page showed no end of a trial")
    else:
        print(f"a trial's end is on the page after {statistics.median(delays):.2f} s (median of {len(delays)}), "
              f"95 % within {delays[int(0.95 * (len(delays) - 1))]:.2f} s, at most {delays[-1]:.2f} s")


if __name__ == "__main__":
    main()
