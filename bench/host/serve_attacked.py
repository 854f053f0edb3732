#!/usr/bin/env python3
"""`dsat-host serve` under clients that mean harm, and what an honest reader notices of them.

    bench/host/serve_attacked.py [BUILD_DIR] [--seconds N] [--slow N]

For a minute: 200 clients that send a byte now and then, clients that send headers without an end as fast as they can,
clients that ask for hundreds of ranges, and a journal that is a pipe every other second. Meanwhile a reader asks for
the list of studies ten times a second, each time on a new connection. Prints its slowest answer, the server's peak
memory and the time from TERM to the server's end; status 1 if an answer was wrong or took more than a second, the peak
reached 64 MB or the end took more than a second. The attackers have a lower priority: theirs are other machines.
"""
import argparse
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES, MOST_SECONDS = 64 << 20, 1.0


def connect(at):
    connection = socket.create_connection((at.hostname, at.port), timeout=30)
    connection.setblocking(False)
    return connection


def slow_clients(at, count):
    """A byte for every client twice a second; a client that is cut off comes again."""
    clients = []
    while True:
        while len(clients) < count:
            clients.append(connect(at))
        for client in list(clients):
            try:
                client.send(b"G")
                if client.recv(4096) == b"":
                    raise ConnectionError
            except BlockingIOError:
                pass
            except OSError:
                client.close()
                clients.remove(client)
        time.sleep(0.5)


def endless_headers(at):
    block = b"X-Some-Header: " + b"y" * 85 + b"\r\n"
    while True:
        with socket.create_connection((at.hostname, at.port), timeout=30) as client:
            try:
                client.sendall(f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\n".encode())
                while True:
                    client.sendall(block * 600)
            except OSError:
                pass


def many_ranges(at):
    ranges = ",".join(f"{i}-{i + 1000000}" for i in range(450))
    request = f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nRange: bytes={ranges}\r\n\r\n".encode()
    while True:
        with socket.create_connection((at.hostname, at.port), timeout=30) as client:
            try:
                client.sendall(request)
                for _ in range(20):  # slowly, so that the answer waits in the server
                    client.recv(4096)
                    time.sleep(0.1)
            except OSError:
                pass


def swapped_pipe(journal):
    kept = journal.with_name("kept")
    while True:
        journal.rename(kept)
        os.mkfifo(journal)
        time.sleep(1)
        kept.rename(journal)
        time.sleep(1)


def honest(at):
    """Seconds until the whole answer, and its first line."""
    begin, whole = time.monotonic(), b""
    with socket.create_connection((at.hostname, at.port), timeout=30) as client:
        client.sendall(f"GET {at.path}studies.json HTTP/1.1\r\nHost: {at.netloc}\r\nConnection: close\r\n\r\n".encode())
        while part := client.recv(1 << 16):
            whole += part
    return time.monotonic() - begin, whole.partition(b"\r\n")[0]


def peak_bytes(pid):
    return int(re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) << 10


def attack(function, arguments):
    os.nice(10)
    try:
        function(*arguments)
    except OSError:  # the server has ended
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--slow", type=int, default=200)
    options = parser.parse_args()
    host = options.build.resolve() / "dsat-host"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([host, "--runner", "sim", "--sim", ROOT / "examples/sim/8-gpus-a100-gpt2-xl.json", "--searcher",
                        "random", "--max-trials", "40", "--quiet", "--output-dir", "study"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        server = subprocess.Popen([host, "serve", "study"], cwd=folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        at = urllib.parse.urlsplit(re.search(r"http://\S+", server.stdout.readline()).group())
        attackers = [multiprocessing.Process(target=attack, args=how, daemon=True) for how in (
            (slow_clients, (at, options.slow)), (endless_headers, (at,)), (endless_headers, (at,)),
            (many_ranges, (at,)), (many_ranges, (at,)), (swapped_pipe, (pathlib.Path(folder) / "study/dsat.db",)))]
        for attacker in attackers:
            attacker.start()
        end, times, wrong = time.monotonic() + options.seconds, [], []
        while time.monotonic() < end:
            took, line = honest(at)
            times.append(took)
            if line != b"HTTP/1.1 200 OK":
                wrong.append(line)
            time.sleep(0.1)
        peak = peak_bytes(server.pid)
        begin = time.monotonic()
        server.send_signal(signal.SIGTERM)
        status = server.wait(timeout=60)
        stopping = time.monotonic() - begin
        for attacker in attackers:
            attacker.terminate()
        times.sort()
        median = times[len(times) // 2]
        print(f"{len(times)} answers, {len(wrong)} wrong {set(wrong) or ''}: median {1000 * median:.1f} ms, slowest "
              f"{1000 * times[-1]:.1f} ms; peak {peak / 2**20:.1f} MiB; TERM to end {1000 * stopping:.0f} ms, status "
              f"{status}")
        fails = wrong or times[-1] > MOST_SECONDS or peak >= MOST_BYTES or stopping > MOST_SECONDS or status != 0
        return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
