"""SearcherContext: the length of the training. A trial and the full training have one operation each."""
import enum
import logging

from .._absent import Refusing
from .. import _study

logger = logging.getLogger("determined.core")


class Unit(enum.Enum):
    EPOCHS = "UNIT_EPOCHS"
    RECORDS = "UNIT_RECORDS"
    BATCHES = "UNIT_BATCHES"


class SearcherMode(enum.Enum):
    """Who asks for operations: all ranks together, or rank 0 alone, which then informs the others."""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"


class SearcherOperation(Refusing):
    """Train until `length` (counted from the start of the training), validate, call report_completed()."""

    def __init__(self, length, is_chief, on_completed=lambda _: None):
        self._length = length
        self._is_chief = is_chief
        self._completed = False
        self._on_completed = on_completed

    @property
    def length(self):
        return self._length

    def report_progress(self, length):
        self._check_chief("report_progress")
        if self._completed and length != self._length:
            raise RuntimeError("op.report_progress() after op.report_completed(): the operation is over")
        logger.info("progress: %s of %s", length, self._length)

    def report_completed(self, searcher_metric):
        self._check_chief("report_completed")
        if self._completed:
            raise RuntimeError("op.report_completed() was called twice for one operation")
        self._completed = True
        logger.info("completed: %s", searcher_metric)
        self._on_completed(searcher_metric)

    def _check_chief(self, method):
        if not self._is_chief:
            raise RuntimeError(f"op.{method}() is for rank 0: check core_context.distributed.rank == 0 first")


class SearcherContext(Refusing):
    def __init__(self, distributed, length, unit, on_completed=lambda _: None):
        self._distributed = distributed
        self._length = length
        self._unit = unit
        self._on_completed = on_completed

    def operations(self, searcher_mode=SearcherMode.WorkersAskChief, auto_ack=True):
        """Yields the only operation. Rank 0 must complete it before the loop asks for the next."""
        together = SearcherMode(searcher_mode) == SearcherMode.WorkersAskChief
        is_chief = self._distributed.rank == 0
        if not is_chief and not together:
            raise RuntimeError("searcher.operations(ChiefOnly) is for rank 0: use SearcherMode.WorkersAskChief")
        length = self._distributed.broadcast(self._length) if together else self._length
        operation = SearcherOperation(length, is_chief, self._on_completed)
        yield operation
        if is_chief and not operation._completed:
            raise RuntimeError("the loop asks for the next operation before op.report_completed() of this one")
        if together:
            self._distributed.broadcast(None)  # the other ranks wait until rank 0 has completed it

    def acknowledge_out_of_ops(self):
        pass  # nobody waits for the acknowledgement

    def get_configured_units(self):
        """The unit of `searcher.max_length`. The unit of a bare number is None."""
        return None if self._unit is None else Unit[self._unit.upper()]


def make_searcher_context(distributed, config, on_completed):
    length, unit = _study.training_length(config) if _study.is_managed() else (1, "epochs")
    return SearcherContext(distributed, length, unit, on_completed)
