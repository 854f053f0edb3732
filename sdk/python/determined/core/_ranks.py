"""Objects sent between the ranks of one training: every rank is connected to the first, over sockets.

It needs no process group, so it works before torch has one. The first rank leaves its address and a random key in a
file that only this user can read, in the folder that all ranks share; the key opens the connection (HMAC), then the
file goes. A file that an earlier run left is recognised by its key: nobody answers to it.
"""
import contextlib
import io
import json
import os
import pickle
import secrets
import sys
import tempfile
import time
from multiprocessing import connection

from dsat import Error, current_trial

_PATIENCE_S = 600  # ranks start far apart on a busy machine
_LOOK_AGAIN_S = 0.05


def rendezvous_file(name):
    trial = current_trial()
    folder = trial.directory if trial is not None else tempfile.gettempdir()
    whose = f"{os.getuid()}-{os.environ.get('MASTER_ADDR', '')}-{os.environ.get('MASTER_PORT', '')}"
    return os.path.join(folder, f"dsat-ranks-{''.join(c if c.isalnum() else '-' for c in whose)}-{name}.json")


class _Pickler(pickle.Pickler):
    """Writes tensors by their values: the receiver need not see the device, and another machine not the memory."""

    def reducer_override(self, value):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor) and value.device.type != "cpu":
            return value.detach().cpu().__reduce_ex__(self._protocol)
        return NotImplemented

    _protocol = pickle.HIGHEST_PROTOCOL

    @classmethod
    def bytes_of(cls, value):
        buffer = io.BytesIO()
        cls(buffer, cls._protocol).dump(value)
        return buffer.getvalue()


class Ranks:
    """The ranks `0 .. size - 1` of a group called `name`. The first one is the chief."""

    def __init__(self, rank, size, name, host):
        self.rank, self.size = rank, size
        self._file = rendezvous_file(name)
        self._peers = {}  # of the chief: rank -> connection
        self._chief = None
        if size > 1:
            self._listen(host) if rank == 0 else self._connect()

    def _listen(self, host):
        is_local = host in ("localhost", "127.0.0.1", "::1", "")
        key = secrets.token_bytes(32)
        with connection.Listener(("127.0.0.1" if is_local else "0.0.0.0", 0),
                                 backlog=self.size, authkey=key) as listener:
            address = ["127.0.0.1" if is_local else host, listener.address[1]]
            self._publish({"address": address, "key": key.hex()})
            try:
                while len(self._peers) < self.size - 1:
                    with contextlib.suppress(connection.AuthenticationError, EOFError, ConnectionError):
                        peer = listener.accept()
                        self._peers[peer.recv()] = peer
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(self._file)

    def _publish(self, where):
        temporary = f"{self._file}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(where, file)
        os.replace(temporary, self._file)

    def _connect(self):
        deadline = time.monotonic() + _PATIENCE_S
        while self._chief is None:
            with contextlib.suppress(OSError, ValueError, KeyError, EOFError, connection.AuthenticationError):
                if os.stat(self._file).st_uid == os.getuid():
                    with open(self._file) as file:
                        where = json.load(file)
                    peer = connection.Client(tuple(where["address"]), authkey=bytes.fromhex(where["key"]))
                    peer.send(self.rank)
                    self._chief = peer
            if self._chief is None:
                if time.monotonic() > deadline:
                    raise Error(f"rank {self.rank} of {self.size} found no first rank in {_PATIENCE_S} seconds "
                                f"({self._file}): do all ranks run, and do they share that folder?")
                time.sleep(_LOOK_AGAIN_S)

    def gather(self, value):
        """The values of all ranks, in their order, at the chief; None elsewhere."""
        if self.rank != 0:
            self._send(self._chief, value, 0)
            return None
        return [value] + [self._receive(self._peers[rank], rank) for rank in range(1, self.size)]

    def broadcast(self, value):
        """The chief's value, on every rank."""
        if self.rank != 0:
            return self._receive(self._chief, 0)
        for rank in range(1, self.size):
            self._send(self._peers[rank], value, rank)
        return value

    def allgather(self, value):
        return self.broadcast(self.gather(value))

    @staticmethod
    def _send(peer, value, rank):
        try:
            peer.send_bytes(_Pickler.bytes_of(value))
        except OSError as error:
            raise Error(f"rank {rank} has ended, its own message says why ({error})") from error

    @staticmethod
    def _receive(peer, rank):
        try:
            return pickle.loads(peer.recv_bytes())
        except (EOFError, OSError) as error:
            raise Error(f"rank {rank} has ended, its own message says why") from error

    def close(self):
        for peer in [*self._peers.values(), *([self._chief] if self._chief else [])]:
            peer.close()
        self._peers, self._chief = {}, None
