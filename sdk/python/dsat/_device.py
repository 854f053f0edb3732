"""Ranks and device memory, asked of torch if the script has imported it."""
import os
import sys
from typing import Any, List, Optional


def _torch() -> Optional[Any]:
    return sys.modules.get("torch")


def _distributed() -> Optional[Any]:
    """torch.distributed with a process group, None without one."""
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


def rank() -> int:
    """This process's rank over all nodes: torch's, else the launcher's, else 0."""
    distributed = _distributed()
    if distributed is not None:
        return int(distributed.get_rank())
    return _variable("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID") or 0


def world_size() -> Optional[int]:
    """Processes of the training; None: nobody says."""
    distributed = _distributed()
    if distributed is not None:
        return int(distributed.get_world_size())
    return _variable("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def _accelerator() -> Optional[Any]:
    """torch.cuda (ROCm too) or torch.xpu, if the script has touched it."""
    torch = _torch()
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)
        if device is not None and device.is_available() and getattr(device, "is_initialized", bool)():
            return device
    return None


def synchronize() -> None:
    """Waits for the device, so that a clock sees what was done and not what was queued."""
    device = _accelerator()
    if device is not None:
        device.synchronize()


class DeviceMemory:
    """Memory of this process's device in bytes, as torch's allocator counts it; None: unknown.

    Derive from it for a device that torch keeps no account of.
    """

    def used_bytes(self) -> Optional[int]:
        device = _accelerator()
        return None if device is None else int(device.memory_allocated())

    def peak_bytes(self) -> Optional[int]:
        """The most that was in use at any time so far."""
        device = _accelerator()
        return None if device is None else int(device.max_memory_allocated())

    def total_bytes(self) -> Optional[int]:
        device = _accelerator()
        if device is None:
            return None
        return int(device.get_device_properties(device.current_device()).total_memory)


def largest_over_ranks(values: List[int]) -> List[int]:
    """Of each value the largest on any rank. Every rank must call it, with as many values."""
    torch, distributed = _torch(), _distributed()
    if torch is None or distributed is None or distributed.get_world_size() == 1:
        return values
    backend = str(distributed.get_backend())
    device = {"nccl": "cuda", "xccl": "xpu"}.get(backend, "cpu")
    tensor = torch.tensor(values, dtype=torch.int64, device=device)
    distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
    return [int(value) for value in tensor.tolist()]
