"""Samplers that are put around one another: shuffle, then repeat, then share among ranks, then skip.

Each keeps the length of what it stands around, but for those that share: theirs is the rank's part. A class whose name
has "Batch" goes around a batch sampler, the other of its name around a sampler.
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
    """Begins anew whenever it has come to the end. One that yields nothing ends."""

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
    """Of every `num_workers` entries the one that is this rank's."""

    def __init__(self, sampler, num_workers, rank):
        super().__init__(sampler)
        if num_workers < 1:
            raise ValueError(f"num_workers is {num_workers}: there is at least one rank")
        if not 0 <= rank < num_workers:
            raise ValueError(f"rank is {rank}, of {num_workers} ranks")
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
    """Without the first `skip` entries; its length stays, since what it skips was counted before."""

    def __init__(self, sampler, skip):
        super().__init__(sampler)
        if skip < 0:
            raise ValueError(f"skip is {skip}: it counts entries")
        self.skip = skip

    def __iter__(self):
        return itertools.islice(iter(self._inner), self.skip, None)


class SkipBatchSampler(SkipSampler):
    def __init__(self, batch_sampler, skip):
        super().__init__(batch_sampler, skip)
        self.batch_sampler = batch_sampler


class ReproducibleShuffleSampler(_Around):
    """A new order each time it is begun, the same for the same seed. Shuffle before you repeat."""

    def __init__(self, sampler, seed):
        super().__init__(sampler)
        self._random = np.random.RandomState(seed)

    def __iter__(self):
        entries = list(self._inner)
        return iter([entries[i] for i in self._random.permutation(len(entries))])


class ReproducibleShuffleBatchSampler(ReproducibleShuffleSampler):
    """Shuffles the order of batches, not what is in them: prefer the one for samplers."""

    def __init__(self, batch_sampler, seed):
        super().__init__(batch_sampler, seed)
