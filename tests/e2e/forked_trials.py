"""Starts of dsat-trial without the time that loading LibTorch takes: forks of a process that has loaded it.

What is tested is what dsat-trial does with its command line. A test of the program itself, of signals, or of a study
starts BUILD / "dsat-trial".
"""
import atexit
import json
import pathlib
import select
import subprocess
import tempfile

from support import BUILD

_server = None


def _started():
    global _server
    if _server is None or _server.poll() is not None:
        _server = subprocess.Popen([BUILD / "tests/trial_forks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(_server.communicate)
    return _server


def run_dsat_trial(*arguments, cwd, timeout=240):
    """As subprocess.run() of dsat-trial with these arguments."""
    arguments = [str(argument) for argument in arguments]
    server = _started()
    with tempfile.TemporaryDirectory() as folder:
        stdout, stderr = (pathlib.Path(folder, name) for name in ("stdout", "stderr"))
        start = {"arguments": arguments, "dir": str(cwd), "stdout": str(stdout), "stderr": str(stderr)}
        server.stdin.write(json.dumps(start).encode() + b"\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], timeout)[0]:
            server.kill()
            server.wait()
            raise subprocess.TimeoutExpired(arguments, timeout, stdout.read_bytes(), stderr.read_bytes())
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, stdout.read_text(), stderr.read_text())
