"""DistributedContext: the rank of this process, and Python objects sent between ranks."""
import os

from dsat import Error

from .._absent import Refusing
from ._ranks import Ranks

_NAMES = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")


def _number(launcher, *names):
    for name in names:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    raise Error(f"DistributedContext.from_{launcher}(): the environment has no {names[0]}: start the script with the "
                f"launcher, or build DistributedContext(rank=..., size=..., ...)")


class DistributedContext(Refusing):
    """`rank`, `size`, `local_rank`, `local_size`, `cross_rank`, `cross_size`; gather, allgather and broadcast.

    Every rank makes the same calls in the same order. Objects must be picklable. With several machines `chief_ip` is
    the address of rank 0, and all ranks share the trial's folder.
    """

    def __init__(self, *, rank, size, local_rank, local_size, cross_rank, cross_size, chief_ip=None, pub_port=0,
                 pull_port=0, port_offset=0, force_tcp=False):
        numbers = (rank, size, local_rank, local_size, cross_rank, cross_size)
        if any((number is None) != (rank is None) for number in numbers):
            raise ValueError(f"give all of {', '.join(_NAMES)} or none of them")
        defaults = (0, 1, 0, 1, 0, 1)
        for name, number, default in zip(_NAMES, numbers, defaults):
            setattr(self, name, default if number is None else number)
        if not 0 <= self.rank < self.size:
            raise ValueError(f"rank is {self.rank}, but there are {self.size} ranks: ranks count from 0")
        if self.cross_size > 1 and chief_ip is None:
            raise ValueError("chief_ip is missing: with several machines it is the address of rank 0")
        host = chief_ip or "127.0.0.1"
        self._all = Ranks(self.rank, self.size, "all", host)
        self._local = self._all
        if self.cross_size > 1:
            self._local = Ranks(self.local_rank, self.local_size, f"host{self.cross_rank}", "127.0.0.1")

    @classmethod
    def _from_environment(cls, launcher, local_size_names, cross_rank_names, chief_ip):
        size = _number(launcher, "WORLD_SIZE")
        local_size = _number(launcher, *local_size_names, "WORLD_SIZE")
        return cls(rank=_number(launcher, "RANK"), size=size, local_rank=_number(launcher, "LOCAL_RANK"),
                   local_size=local_size, cross_rank=_number(launcher, *cross_rank_names) if size > local_size else 0,
                   cross_size=max(1, size // local_size), chief_ip=chief_ip or os.environ.get("MASTER_ADDR"))

    @classmethod
    def from_deepspeed(cls, chief_ip=None):
        """The ranks from the environment of the launcher `deepspeed`, or of torchrun in its place."""
        return cls._from_environment("deepspeed", ("LOCAL_SIZE", "LOCAL_WORLD_SIZE"), ("CROSS_RANK", "GROUP_RANK"),
                                     chief_ip)

    @classmethod
    def from_torch_distributed(cls, chief_ip=None):
        """The ranks from torchrun's environment."""
        return cls._from_environment("torch_distributed", ("LOCAL_WORLD_SIZE", "LOCAL_SIZE"),
                                     ("GROUP_RANK", "CROSS_RANK"), chief_ip)

    @classmethod
    def from_horovod(cls, hvd, chief_ip=None):
        """The ranks from the module `hvd`, for a script that only reports: horovod's entrypoints are refused."""
        return cls(rank=hvd.rank(), size=hvd.size(), local_rank=hvd.local_rank(), local_size=hvd.local_size(),
                   cross_rank=hvd.cross_rank(), cross_size=hvd.cross_size(),
                   chief_ip=chief_ip or os.environ.get("MASTER_ADDR"))

    def get_rank(self):
        return self.rank

    def get_local_rank(self):
        return self.local_rank

    def get_size(self):
        return self.size

    def get_num_agents(self):
        """The number of machines."""
        return self.cross_size

    def gather(self, stuff):
        """Returns the objects of all ranks on rank 0, None on the others."""
        return self._all.gather(stuff)

    def gather_local(self, stuff):
        """Like gather(), among the ranks of this machine."""
        return self._local.gather(stuff)

    def allgather(self, stuff):
        """Returns the objects of all ranks on every rank."""
        return self._all.allgather(stuff)

    def allgather_local(self, stuff):
        return self._local.allgather(stuff)

    def broadcast(self, stuff):
        """Returns the object of rank 0 on every rank."""
        return self._all.broadcast(stuff)

    def broadcast_local(self, stuff=None):
        return self._local.broadcast(stuff)

    def close(self):
        self._all.close()
        self._local.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class DummyDistributedContext(DistributedContext):
    """One rank."""

    def __init__(self):
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)
