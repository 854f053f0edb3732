"""Samplers to be nested: shuffle, then repeat, then share among ranks, then skip.

A sampler has the length of the inner one; a shared one has the length of the rank's share. A class with "Batch" in its
name wraps a batch sampler, the other one a sampler.
"""
import itertools

import numpy as np
import torch


class _Around(torch.utils.data.Sampler):
    def __init__(self, inner):
        self._inner = inner

    def __len__(self):
        return len(self._inner)


class RepeatSampler(_Around):
    """Starts again at the end, without limit. An empty sampler ends."""

    def __init__(self, sampler):
        super().__init__(sampler)

    def __iter__(self):
        while True:
            empty = True
            for entry in self._inner:
                empty = False
                yield entry
            if empty:
                return


class RepeatBatchSampler(RepeatSampler):
    def __init__(self, batch_sampler):
        super().__init__(batch_sampler)
        self.batch_sampler = batch_sampler


class DistributedSampler(_Around):
    """Takes one of every `num_workers` entries, this rank's."""

    def __init__(self, sampler, num_workers, rank):
        super().__init__(sampler)
        if num_workers < 1:
            raise ValueError(f"num_workers is {num_workers}: it must be at least 1")
        if not 0 <= rank < num_workers:
            raise ValueError(f"rank is {rank}, but there are {num_workers} ranks: ranks count from 0")
        self.num_workers, self.rank = num_workers, rank

    def __len__(self):
        return (len(self._inner) - self.rank + self.num_workers - 1) // self.num_workers

    def __iter__(self):
        return itertools.islice(iter(self._inner), self.rank, None, self.num_workers)


class DistributedBatchSampler(DistributedSampler):
    def __init__(self, batch_sampler, num_workers, rank):
        super().__init__(batch_sampler, num_workers, rank)
        self.batch_sampler = batch_sampler


class SkipSampler(_Around):
    """Leaves out the first `skip` entries. Its length still counts them."""

    def __init__(self, sampler, skip):
        super().__init__(sampler)
        if skip < 0:
            raise ValueError(f"skip is {skip}: it must be at least 0")
        self.skip = skip

    def __iter__(self):
        return itertools.islice(iter(self._inner), self.skip, None)


class SkipBatchSampler(SkipSampler):
    def __init__(self, batch_sampler, skip):
        super().__init__(batch_sampler, skip)
        self.batch_sampler = batch_sampler


class ReproducibleShuffleSampler(_Around):
    """Shuffles anew at each start, in the same orders for the same seed. Shuffle before you repeat."""

    def __init__(self, sampler, seed):
        super().__init__(sampler)
        self._random = np.random.RandomState(seed)

    def __iter__(self):
        entries = list(self._inner)
        return iter([entries[i] for i in self._random.permutation(len(entries))])


class ReproducibleShuffleBatchSampler(ReproducibleShuffleSampler):
    """Shuffles the order of batches, not their contents. Prefer ReproducibleShuffleSampler."""

    def __init__(self, batch_sampler, seed):
        super().__init__(batch_sampler, seed)
