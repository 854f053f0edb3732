"""The data loader that trial classes return, and helpers for batches."""
from typing import Any, Dict, Sequence, Union

import numpy as np
import torch
from torch.utils import data

from .._once import say_once
from . import samplers

TorchData = Union[Dict[str, torch.Tensor], Sequence[torch.Tensor], torch.Tensor]
_Data = Union[Dict[str, Any], Sequence[Any], np.ndarray, torch.Tensor]


def new_seed():
    return int(torch.empty((), dtype=torch.int64).random_())


class DataLoader:
    """Keeps the arguments of torch's DataLoader until the ranks and the place in the data are known.

    `get_data_loader` then gives torch's: repeated, shared among the ranks, from the batch of the checkpoint on. It can
    also be iterated directly. An IterableDataset is refused, because it cannot be shared by index.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False):
        if isinstance(dataset, data.IterableDataset):
            raise ValueError(f"DataLoader: {type(dataset).__name__} is an IterableDataset, "
                             "which cannot be shared among ranks by index: return torch's DataLoader of it after "
                             "context.disable_dataset_reproducibility_checks()")
        if batch_sampler is None and batch_size is None:
            raise ValueError("DataLoader: batch_size=None without a batch_sampler makes no batches: give one of them")
        if hasattr(dataset, "__len__") and len(dataset) == 0:
            raise ValueError(f"DataLoader: {type(dataset).__name__} is empty: give it samples")
        self._own = None
        if shuffle and sampler is None and batch_sampler is None and generator is None:
            # A generator of its own: a training that continues from a checkpoint has to draw the same orders again,
            # whatever the state of the other generators.
            self._own = torch.Generator().manual_seed(new_seed())
            shuffle, sampler = False, data.RandomSampler(dataset, generator=self._own)
        named = dict(batch_size=batch_size, shuffle=shuffle, sampler=sampler, batch_sampler=batch_sampler,
                     num_workers=num_workers, collate_fn=collate_fn, pin_memory=pin_memory, drop_last=drop_last,
                     timeout=timeout, worker_init_fn=worker_init_fn, multiprocessing_context=multiprocessing_context,
                     generator=generator, persistent_workers=persistent_workers)
        if prefetch_factor is not None:
            named["prefetch_factor"] = prefetch_factor
        plain = data.DataLoader(dataset, **named)  # torch checks the arguments and adds its defaults
        self.dataset, self.batch_size, self.drop_last = dataset, plain.batch_size, plain.drop_last
        self.sampler, self.batch_sampler, self.collate_fn = plain.sampler, plain.batch_sampler, plain.collate_fn
        self.num_workers = num_workers
        kept = ("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator",
                "prefetch_factor", "persistent_workers")
        self._named = {name: named[name] for name in kept if name in named}

    def share_order(self, seed):
        """Makes all ranks with the same seed shuffle alike, even if their generators differ."""
        if self._own is not None:
            self._own.manual_seed(seed)

    def get_data_loader(self, repeat=False, skip=0, num_replicas=1, rank=0):
        sampler = adapt_batch_sampler(self.batch_sampler, repeat, skip, num_replicas, rank)
        return data.DataLoader(self.dataset, batch_sampler=sampler, collate_fn=self.collate_fn, **self._named)

    def __iter__(self):
        return iter(self.get_data_loader())

    def __len__(self):
        return len(self.batch_sampler)


def adapt_batch_sampler(batch_sampler, repeat=False, skip=0, num_replicas=1, rank=0):
    """Repeats without end, takes this rank's share, and skips batches that were trained before."""
    if repeat:
        batch_sampler = samplers.RepeatBatchSampler(batch_sampler)
    if num_replicas > 1:
        batch_sampler = samplers.DistributedBatchSampler(batch_sampler, num_replicas, rank)
    if skip > 0:
        batch_sampler = samplers.SkipBatchSampler(batch_sampler, skip)
    return batch_sampler


def data_length(batch):
    """The number of samples in a batch, by its first tensor or array."""
    if isinstance(batch, (np.ndarray, torch.Tensor)):
        return len(batch)
    if isinstance(batch, (dict, list, tuple)):
        if not batch:
            raise ValueError(f"a batch is an empty {type(batch).__name__}: it needs a tensor or an array")
        return len(next(iter(batch.values())) if isinstance(batch, dict) else batch[0])
    raise TypeError(
        f"a batch is a {type(batch).__name__}: it must be a tensor, an array, or a dict, list or tuple of them")


def to_device(batch, device, warned_types=None):
    """`batch` with its tensors and arrays as tensors on `device`. Other data stays, with a warning once a type."""
    if isinstance(batch, dict):
        return {key: to_device(value, device, warned_types) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        moved = [to_device(value, device, warned_types) for value in batch]
        if hasattr(batch, "_fields"):
            return type(batch)(*moved)
        return moved if isinstance(batch, list) else tuple(moved)
    if isinstance(batch, np.ndarray):
        if batch.dtype.kind in "fciub":
            return torch.from_numpy(batch).to(device)
    elif callable(getattr(batch, "to", None)):
        return batch.to(device)
    if warned_types is None or type(batch) not in warned_types:
        say_once(f"data of type {type(batch).__name__} cannot be moved to a device: it stays as it is")
        if warned_types is not None:
            warned_types.add(type(batch))
    return batch
