"""dsat-host as a process of its own: its events, its end, its last words. A crash of it is an error here, no more."""
import json
import os
import signal
import subprocess
import tempfile
from typing import Any, Callable, Dict, List, Optional

from ._errors import Error

Event = Dict[str, Any]


class _Lines:
    """Whole lines from a descriptor. An interrupt loses none, as it would in a buffered file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def next(self) -> Optional[bytes]:
        while b"\n" not in self._rest:
            data = os.read(self._fd, 1 << 16)
            if not data:
                return None
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return line


class HostProcess:
    def __init__(self, program: List[str], words: List[str], cwd: Optional[str], env: Optional[Dict[str, str]]) -> None:
        read, write = os.pipe()
        self._errors = tempfile.TemporaryFile()
        try:
            # A group of its own: an interrupt of the terminal comes here first and is passed on once.
            self._process = subprocess.Popen([*program, f"--events={write}", "--quiet", *words], cwd=cwd, env=env,
                                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._errors,
                                             pass_fds=(write,), start_new_session=True)
        except OSError as error:
            os.close(read)
            self._errors.close()
            raise Error(f"{error.filename or program[0]}: {error.strerror}") from error
        finally:
            os.close(write)
        self._read = read
        self._printed = ""
        self.interrupts = 0

    def run(self, on_event: Callable[[Event], None]) -> int:
        """Passes on each event and returns the exit status. The first interrupt ends the study gently, the second at
        once; that one is raised when it has ended. If `on_event` raises, the study ends gently too."""
        lines = _Lines(self._read)
        try:
            while True:
                try:
                    line = lines.next()
                    if line is None:
                        break
                    on_event(json.loads(line))
                except KeyboardInterrupt:
                    self._interrupt()
            status = self._wait()
        except BaseException:
            self._process.send_signal(signal.SIGINT)
            self._wait()
            raise
        finally:
            os.close(self._read)
            self._errors.seek(0)
            self._printed = self._errors.read().decode("utf-8", "replace").strip()
            self._errors.close()
        if self.interrupts > 1:
            raise KeyboardInterrupt
        return status

    def _interrupt(self) -> None:
        self.interrupts += 1
        self._process.send_signal(signal.SIGINT)

    def _wait(self) -> int:
        while True:
            try:
                return self._process.wait()
            except KeyboardInterrupt:
                self._interrupt()

    def last_error(self) -> str:
        """The last line of dsat-host on standard error, without its name."""
        lines = self._printed.splitlines()
        named = [line for line in lines if line.startswith("dsat-host: ")]
        status = self._process.returncode
        how = f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"
        last = (named or lines)[-1:]
        return last[0].replace("dsat-host: ", "", 1) if last else f"dsat-host ended without a word: {how}"
