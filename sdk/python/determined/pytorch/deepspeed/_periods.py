"""Lengths and periods of the experiment file, in batches."""
from ...errors import InvalidExperimentException


class Periods:
    """`scheduling_unit`, `min_validation_period`, `min_checkpoint_period`, lengths of the searcher."""

    def __init__(self, config, train_batch_size, epoch_batches, unit_of_length):
        self._train_batch = train_batch_size
        self._epoch = epoch_batches
        self._counts_epochs = unit_of_length == "epochs"
        self.unit = self._count(config.get("scheduling_unit", 100), "scheduling_unit") or 100
        self.validation = self._period(config, "min_validation_period")
        self.checkpoint = self._period(config, "min_checkpoint_period")
        self.validates_first = bool(config.get("perform_initial_validation", False))
        self.policy = config.get("checkpoint_policy") or "best"
        if self.policy not in ("best", "all", "none"):
            raise InvalidExperimentException(f"checkpoint_policy is {self.policy!r}: use best, all or none")

    @staticmethod
    def _count(value, key):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidExperimentException(f"{key} is {value!r}: it must be a whole number of at least 0")
        return value

    def _period(self, config, key):
        """The period in batches; 0: none."""
        given = config.get(key) or 0
        if isinstance(given, dict):
            if len(given) != 1:
                raise InvalidExperimentException(f"{key} is {given!r}: give one of batches, epochs, records")
            unit, number = next(iter(given.items()))
            return self.in_batches(self._count(number, f"{key}.{unit}"), unit)
        return self._count(given, key)

    def in_batches(self, length, unit):
        if unit in (None, "batches"):
            return length
        if unit == "epochs":
            return length * self._epoch
        if unit == "records":
            return max(1, length // self._train_batch) if length else 0
        raise InvalidExperimentException(f"{unit!r} is no unit of a length: use batches, epochs or records")

    def next_stop(self, done, target):
        """The next batch at which to report, validate, save or end."""
        stops = [target, done + self.unit]
        for period in (self.validation, self.checkpoint, self._epoch if self._counts_epochs else 0):
            if period:
                stops.append((done // period + 1) * period)
        return min(stops)

    @staticmethod
    def is_due(done, period):
        return period > 0 and done % period == 0
