"""Ranks and device memory, from torch if the script has imported it."""
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

_KINDS = ("cuda", "npu", "xpu")  # the kinds of device whose memory torch counts; cuda is ROCm's name too
_CPU_BACKENDS = ("gloo", "mpi", "ccl", "ucc", "undefined")  # undefined: the default, one backend for each kind
_own: Dict[Any, int] = {}  # module such as torch.cuda -> the device that this process trains on


def _torch() -> Optional[Any]:
    return sys.modules.get("torch")


def _distributed() -> Optional[Any]:
    """torch.distributed if it has a process group, else None."""
    torch = _torch()
    if torch is None:
        return None
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def _variable(*names: str) -> Optional[int]:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def _of_slurm_step(name: str) -> Tuple[str, ...]:
    """`name` if srun started several tasks. An allocation's shell and its batch script have such variables too."""
    return (name,) if (_variable("SLURM_STEP_NUM_TASKS") or 0) > 1 else ()


def rank() -> int:
    """This process's rank over all nodes: from torch, else from the launcher, else 0."""
    distributed = _distributed()
    if distributed is not None:
        return int(distributed.get_rank())
    return _variable("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", *_of_slurm_step("SLURM_PROCID")) or 0


def world_size() -> Optional[int]:
    """The number of processes of the training; None: unknown."""
    distributed = _distributed()
    if distributed is not None:
        return int(distributed.get_world_size())
    return _variable("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", *_of_slurm_step("SLURM_STEP_NUM_TASKS"))


def _accelerator() -> Optional[Tuple[str, Any]]:
    """The kind of device that the script uses, and torch's module for it."""
    torch = _torch()
    for kind in _KINDS:
        device = getattr(torch, kind, None)
        if device is not None and device.is_available() and getattr(device, "is_initialized", bool)():
            return kind, device
    return None


def _own_index(device: Any) -> int:
    """The device that this process uses most, because a script need not make its device the current one."""
    current = int(device.current_device())
    peaks = [(int(device.max_memory_allocated(index)), index == current) for index in range(device.device_count())]
    own = peaks.index(max(peaks))
    if peaks[own][0] > 0:
        _own[device] = own
    return own


def synchronize() -> None:
    """Waits for the device, so that a clock measures finished work and not queued work."""
    found = _accelerator()
    if found is not None:
        _, device = found  # the device's index is kept, because to search all devices would lengthen every phase
        device.synchronize(_own[device] if device in _own else _own_index(device))


class DeviceMemory:
    """Memory of this process's device in bytes, as torch's allocator counts it; None: unknown.

    Derive from it for a device that torch does not count.
    """

    def used_bytes(self) -> Optional[int]:
        return self._ask(lambda device, index: device.memory_allocated(index))

    def peak_bytes(self) -> Optional[int]:
        """The largest use so far."""
        return self._ask(lambda device, index: device.max_memory_allocated(index))

    def total_bytes(self) -> Optional[int]:
        return self._ask(lambda device, index: device.get_device_properties(index).total_memory)

    @staticmethod
    def _ask(question: Callable[[Any, int], Any]) -> Optional[int]:
        found = _accelerator()
        return None if found is None else int(question(found[1], _own_index(found[1])))


def _device_for(backend: str) -> str:
    """The device for tensors of `backend`: one name, or one for each kind of device (cpu:gloo,cuda:nccl)."""
    found = _accelerator()
    if found is None or backend in _CPU_BACKENDS or "cpu:" in backend:
        return "cpu"
    kind, device = found
    return f"{kind}:{_own_index(device)}"


def largest_over_ranks(values: List[int]) -> List[int]:
    """The largest of each value over all ranks. Every rank must call it with equally many values."""
    torch, distributed = _torch(), _distributed()
    if torch is None or distributed is None or distributed.get_world_size() == 1:
        return values
    tensor = torch.tensor(values, dtype=torch.int64, device=_device_for(str(distributed.get_backend())))
    distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
    return [int(value) for value in tensor.tolist()]
