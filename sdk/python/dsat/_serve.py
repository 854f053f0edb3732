"""The process of a searcher in Python: requests of dsat-host in, answers out (host/src/plugin/plugin_server.h).

`python3 -m dsat._serve FILE` with the connection as descriptor 3. A message is four bytes of length, little-endian, `J`
for JSON or `B` for the bytes of a state, and the body.
"""
import importlib.util
import json
import os
import socket
import struct
import sys
import threading
import traceback
import types
from typing import Any, Dict, List, Optional, Tuple, Type

from ._errors import Error
from ._searcher import OUTCOMES, Exit, Result, Searcher

Json = Dict[str, Any]

CONNECTION = 3
ABI = (1, 0)
INVALID_ARGUMENT, INTERNAL = 3, 13
SEVERITIES = ("debug", "info", "warning", "error")
MOST_REQUESTS = 10_000  # of one event
MOST_BYTES = 64 << 20


class Ended(Exception):
    """dsat-host has closed the connection."""


class Connection:
    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._sending = threading.Lock()

    def send(self, message: Json) -> None:
        self._send(b"J", json.dumps(message, allow_nan=False).encode())

    def send_state(self, state: bytes) -> None:
        self._send(b"B", state)

    def _send(self, kind: bytes, body: bytes) -> None:
        with self._sending:
            self._socket.sendall(struct.pack("<I", len(body)) + kind + body)

    def receive(self) -> bytes:
        (size,) = struct.unpack("<I", self._exactly(5)[:4])
        return self._exactly(size)

    def receive_json(self) -> Json:
        message: Json = json.loads(self.receive())
        return message

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise Ended
            data += part
        return bytes(data)


class Host:
    """The host as a searcher sees it. Requests are legal during an event, from the event's thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._thread: Optional[int] = None
        self._known = 0
        self._finished = False
        self._bytes = 0
        self.ops: List[Json] = []

    def begin(self, known: int) -> None:
        self._thread, self._known, self.ops, self._bytes = threading.get_ident(), known, [], 0

    def end(self) -> None:
        self._thread = None

    def _check(self, what: str) -> None:
        if self._thread != threading.get_ident():
            raise Error(f"{what} is refused: it came outside of an event, or from another thread")
        if self._finished:
            raise Error(f"{what}: a request after finish")
        if len(self.ops) >= MOST_REQUESTS:
            raise Error(f"more than {MOST_REQUESTS} requests in one event")

    def _trial(self, what: str, trial: Any) -> int:
        if not isinstance(trial, int) or isinstance(trial, bool) or not 0 <= trial < self._known:
            raise Error(f"{what}: no trial {trial!r}")
        return trial

    def create_trial(self, overrides: Any, note: str, parent: Optional[int], repeat: bool) -> Optional[int]:
        self._check("create_trial")
        if not isinstance(overrides, dict):
            raise Error(f"create_trial: overrides are a {type(overrides).__name__}: give a dictionary")
        op: Json = {"op": "create_trial"}
        if repeat:
            op["repeat"] = True
        if parent is not None:
            op["parent"] = self._trial("create_trial: parent", parent)
        try:
            text = json.dumps(overrides, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise Error(f"create_trial: overrides: {error}") from error
        self._bytes += len(text)
        if self._bytes > MOST_BYTES:
            raise Error(f"more than {MOST_BYTES} bytes of requests in one event")
        op.update(overrides=json.loads(text), note=str(note))
        self._connection.send({"ask": "create_trial", "request": op})
        answer = self._connection.receive_json()["trial"]
        if answer is None:
            op["refused"] = True
        else:
            op["trial"] = answer
            self._known = max(self._known, answer + 1)
        self.ops.append(op)
        return None if answer is None else int(answer)

    def stop_trial(self, trial: int) -> None:
        self._check("stop_trial")
        self.ops.append({"op": "stop_trial", "trial": self._trial("stop_trial", trial)})

    def finish(self, reason: str, best: Optional[int]) -> None:
        self._check("finish")
        op: Json = {"op": "finish", "reason": str(reason)}
        if best is not None:
            op["trial"] = self._trial("finish", best)
        self.ops.append(op)
        self._finished = True

    def log(self, message: str, severity: str) -> None:
        if severity not in SEVERITIES:
            raise Error(f"log: {severity!r} is none of {', '.join(SEVERITIES)}")
        self._connection.send({"log": SEVERITIES.index(severity), "line": str(message)})


def load(file: str) -> types.ModuleType:
    name = "dsat_searcher_" + os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Error(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec.loader.exec_module(module)
    return module


def searchers(module: types.ModuleType) -> Dict[str, Type[Searcher]]:
    """The classes that the file itself defines, by name."""
    return {name: one for name, one in vars(module).items()
            if isinstance(one, type) and issubclass(one, Searcher) and one.__module__ == module.__name__
            and not name.startswith("_")}


def saves(kind: Type[Searcher]) -> bool:
    return hasattr(kind, "save") and hasattr(kind, "restore")


def description(file: str, name: str, kind: Type[Searcher]) -> Json:
    summary = kind.summary or (kind.__doc__ or "").strip().split("\n")[0]
    return {"file": file, "kind": 0, "id": f"python.{os.path.splitext(os.path.basename(file))[0]}.{name}",
            "name": name, "version": kind.version, "summary": summary, "abi": list(ABI),
            "state_version": kind.state_version, "options": [option.json for option in kind.options],
            "study": kind.study}


def where(error: BaseException, file: str) -> str:
    """An error as one line that names the line of the user's file it comes from."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    text = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{lines[-1]}: {text}" if lines else text


class Server:
    def __init__(self, connection: Connection, file: str) -> None:
        self._connection = connection
        self._file = file
        self._host = Host(connection)
        self._kinds: Optional[Dict[str, Type[Searcher]]] = None
        self._made: Optional[Tuple[str, Searcher]] = None

    def kinds(self) -> Dict[str, Type[Searcher]]:
        if self._kinds is None:
            self._kinds = searchers(load(self._file))
        if not self._kinds:
            raise Error("it defines no class that derives from dsat.Searcher")
        return self._kinds

    def run(self) -> None:
        while True:
            request = self._connection.receive_json()
            try:
                self.answer(request)
            except Ended:
                raise
            except Exception as error:  # SystemExit ends the process, as exit() does in every plugin
                self._host.end()
                code = INVALID_ARGUMENT if request["call"] == "create" and isinstance(error, ValueError) else INTERNAL
                self._connection.send({"error": self.message(request, where(error, self._file)), "code": code})

    def message(self, request: Json, text: str) -> str:
        name = self._made[0] if self._made else request.get("id", "").rpartition(".")[2]
        call = request["call"]
        if call == "event":
            call = {"start": "start", "result": "on_result", "exited": "on_trial_exited"}[request["event"]["event"]]
        if name:
            return f"plugin {name}: {call}: {text}"
        return "plugin " + (text if text.startswith(self._file) else f"{self._file}: {text}")

    def answer(self, request: Json) -> None:
        call = request["call"]
        if call == "describe":
            kinds = self.kinds()
            return self._connection.send({"plugins": [description(self._file, *item) for item in kinds.items()]})
        if call == "create":
            name = request["id"].rpartition(".")[2]
            kind = self.kinds()[name]
            self._made = (name, kind(self._host, request["options"], request["seed"]))
            return self._connection.send({"can_save": saves(kind)})
        if self._made is None:
            raise Error("no searcher was created")
        made: Any = self._made[1]
        if call == "save":
            state = made.save()
            if not isinstance(state, (bytes, bytearray)):
                raise Error(f"save returned a {type(state).__name__}: return bytes")
            return self._connection.send_state(bytes(state))
        if call == "restore":
            made.restore(request["study"], self._connection.receive())
            return self._connection.send({"done": True})
        self._host.begin(request["known"])
        self.deliver(made, request["event"])
        self._host.end()
        return self._connection.send({"ops": self._host.ops})

    @staticmethod
    def deliver(made: Searcher, event: Json) -> None:
        if event["event"] == "start":
            made.start(event["study"])
        elif event["event"] == "result":
            metrics = {name: value for name, value in event["metrics"].items() if isinstance(value, (int, float))}
            made.on_result(Result(event["trial"], event["step"], metrics))
        else:
            made.on_trial_exited(Exit(
                event["trial"], OUTCOMES[event["outcome"]] if event["outcome"] < len(OUTCOMES) else "failed",
                event["reason"], event["peak_bytes"] or None, event.get("peak_above_bytes"),
                event.get("allocator_retries", 0), event["exit_code"], event["term_signal"], event["attempt"]))


def main() -> None:
    # Printed lines go to the study's log at once.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        Server(Connection(CONNECTION), os.path.abspath(sys.argv[1])).run()
    except (Ended, OSError):
        pass  # the study has ended


if __name__ == "__main__":
    main()
