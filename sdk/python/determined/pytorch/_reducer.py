"""Reduces metrics over several ranks, by one of four plain ways or by a reducer of the trial class."""
import abc
import enum
import itertools

import numpy as np
import torch

from ..errors import InvalidExperimentException


class Reducer(enum.Enum):
    AVG = 1
    SUM = 2
    MAX = 3
    MIN = 4


class MetricReducer(abc.ABC):
    """Collects values, reduces them on each rank, and then over the ranks."""

    @abc.abstractmethod
    def reset(self):
        """Forgets all values. Called before each stretch of training and each validation."""

    @abc.abstractmethod
    def per_slot_reduce(self):
        """Returns this rank's share, which must be picklable."""

    @abc.abstractmethod
    def cross_slot_reduce(self, per_slot_metrics):
        """Returns the metric of all ranks' shares; a dictionary if the reducer has no name."""


class FunctionReducer(MetricReducer):
    """A function of the list of all values given to `update`, in the order of the data."""

    def __init__(self, fn):
        self.fn = fn
        self.values = []

    def update(self, value):
        self.values.append(value)

    def reset(self):
        self.values = []

    def per_slot_reduce(self):
        return self.values

    def cross_slot_reduce(self, per_slot_metrics):
        nothing = object()  # batches were dealt to the ranks in turn, and the last round may be short
        rounds = itertools.zip_longest(*per_slot_metrics, fillvalue=nothing)
        return self.fn([value for values in rounds for value in values if value is not nothing])


class _Wrapped:
    def __init__(self, reducer, name, for_training, for_validation):
        self.reducer, self.name = reducer, name
        self.for_training, self.for_validation = for_training, for_validation
        self.label = getattr(getattr(reducer, "fn", None), "__name__", None) or type(reducer).__name__

    def call(self, method, *arguments):
        try:
            return getattr(self.reducer, method)(*arguments)
        except Exception as error:
            raise ValueError(f"reducer {self.label} (name={self.name!r}) failed in {method}(): "
                             f"{type(error).__name__}: {error}") from error

    def named(self, value):
        """The metrics in `value`. Raises an error if `value` does not match the name."""
        if self.name is None and not isinstance(value, dict):
            raise AssertionError(f"reducer {self.label} has no name and returned a {type(value).__name__}: give "
                                 "wrap_reducer() a name, or return a dictionary of names and metrics")
        if self.name is not None and isinstance(value, dict):
            raise AssertionError(f"reducer {self.label} is named {self.name!r} and returned a dictionary: "
                                 "leave the name out, or return one metric")
        return value if self.name is None else {self.name: value}


class ReducerContext:
    """The reducers of a trial's context."""

    def __init__(self, allgather):
        self._allgather = allgather
        self._reducers = []

    def wrap_reducer(self, reducer, name=None, for_training=True, for_validation=True):
        """Registers a function or MetricReducer. Pass values to the result in train_batch or evaluate_batch."""
        if any(wrapped.reducer is reducer for wrapped in self._reducers):
            raise AssertionError(f"wrap_reducer() got the same {type(reducer).__name__} twice")
        if not isinstance(reducer, MetricReducer):
            if not callable(reducer):
                raise AssertionError(
                    f"wrap_reducer() takes a function or a MetricReducer, not a {type(reducer).__name__}")
            reducer = FunctionReducer(reducer)
        self._reducers.append(_Wrapped(reducer, name, for_training, for_validation))
        return reducer

    def reset_reducers(self):
        for wrapped in self._reducers:
            wrapped.call("reset")

    def reduce_metrics(self, for_training):
        """Returns the same metrics on every rank. Every rank calls it."""
        chosen = [wrapped for wrapped in self._reducers
                  if (wrapped.for_training if for_training else wrapped.for_validation)]
        if not chosen:
            return {}
        of_ranks = self._allgather([wrapped.call("per_slot_reduce") for wrapped in chosen])
        metrics = {}
        for wrapped, shares in zip(chosen, zip(*of_ranks)):
            metrics.update(wrapped.named(wrapped.call("cross_slot_reduce", list(shares))))
        return metrics


def to_numpy(metrics):
    """The metrics with tensors as arrays, so that ranks without the device can hold them."""
    return {name: _array(value) if isinstance(value, torch.Tensor) else value for name, value in metrics.items()}


def _array(tensor):
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64):
        tensor = tensor.float()  # numpy has neither bfloat16 nor 8-bit floats
    return tensor.numpy()


def mean_of(values):
    """The mean of metrics: an array counts as the mean of its elements, None does not count. None: nothing counts."""
    numbers = [_number(value) for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def _number(value):
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{value!r} is no number")
    return np.mean(array, dtype=float)


def has_mean(value):
    try:
        _number(value)
    except (TypeError, ValueError):  # of lists of several lengths
        return False
    return True


def mean_over_batches(batches, what):
    """The means of the metrics in a list of dictionaries with the same names."""
    means = {}
    for name in batches[0] if batches else ():
        try:
            means[name] = mean_of([batch[name] for batch in batches])
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidExperimentException(
                f"metric '{name}' of {what} has no mean over the batches: {error}") from error
    return means
