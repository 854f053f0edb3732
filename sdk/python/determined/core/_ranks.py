"""Objects sent between the ranks of one training: every rank has a socket to rank 0.

No process group is needed, so it works before torch has one. Rank 0 writes its address and a random key to a file that
only this user can read, in a folder that all ranks share. The key opens the connection (HMAC). Then the file is
removed. The file of an earlier run does no harm, because nobody answers to its key.
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

_PATIENCE_S = 600  # on a busy machine ranks start at very different times
_LOOK_AGAIN_S = 0.05


def rendezvous_file(name):
    trial = current_trial()
    folder = trial.directory if trial is not None else tempfile.gettempdir()
    whose = f"{os.getuid()}-{os.environ.get('MASTER_ADDR', '')}-{os.environ.get('MASTER_PORT', '')}"
    return os.path.join(folder, f"dsat-ranks-{''.join(c if c.isalnum() else '-' for c in whose)}-{name}.json")


class _Pickler(pickle.Pickler):
    """Writes tensors by value, because the receiver may lack the device or the shared memory."""

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
    """The ranks 0 to `size` - 1 of the group `name`. Rank 0 is the chief."""

    def __init__(self, rank, size, name, host):
        self.rank, self.size = rank, size
        self._file = rendezvous_file(name)
        self._peers = {}  # the chief's connections, by rank
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
                    raise Error(f"rank {self.rank} of {self.size} did not find rank 0 within {_PATIENCE_S} seconds "
                                f"({self._file}): check that all ranks run and share that folder")
                time.sleep(_LOOK_AGAIN_S)

    def gather(self, value):
        """Returns the values of all ranks, in their order, on the chief; None on the others."""
        if self.rank != 0:
            self._send(self._chief, value, 0)
            return None
        return [value] + [self._receive(self._peers[rank], rank) for rank in range(1, self.size)]

    def broadcast(self, value):
        """Returns the chief's value on every rank."""
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
            raise Error(f"rank {rank} has ended: see its own output for the reason ({error})") from error

    @staticmethod
    def _receive(peer, rank):
        try:
            return pickle.loads(peer.recv_bytes())
        except (EOFError, OSError) as error:
            raise Error(f"rank {rank} has ended: see its own output for the reason") from error

    def close(self):
        for peer in [*self._peers.values(), *([self._chief] if self._chief else [])]:
            peer.close()
        self._peers, self._chief = {}, None
