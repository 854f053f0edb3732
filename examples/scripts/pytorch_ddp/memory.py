"""A budget for a process that trains on processors, as a device's memory is one on an accelerator.

The kernel enforces it (RLIMIT_DATA: private writable memory), so going over it is a real failed allocation.
"""
import resource

import dsat


def _private_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


class Budget(dsat.DeviceMemory):
    """`limit` bytes beyond what the process holds now. sample() where memory is high, so that the peak is known."""

    def __init__(self, limit):
        self._base = _private_bytes()
        self._limit, self._peak = limit, 0
        resource.setrlimit(resource.RLIMIT_DATA, (self._base + limit, resource.RLIM_INFINITY))

    def used_bytes(self):
        return _private_bytes() - self._base

    def sample(self):
        self._peak = max(self._peak, self.used_bytes())

    def peak_bytes(self):
        self.sample()
        return self._peak

    def total_bytes(self):
        return self._limit
