"""PreemptContext: the order to stop. For the full training it is SIGTERM; a trial of a study gets none.

A trial leaves signals alone: dsat-host ends trials with SIGTERM, and a rank inside a collective must end at once.
"""
import enum
import logging
import signal
import threading

from dsat import current_trial

from .._absent import Refusing

logger = logging.getLogger("determined.core")


class PreemptMode(enum.Enum):
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class PreemptContext(Refusing):
    def __init__(self, distributed, preempt_mode=PreemptMode.WorkersAskChief):
        self._distributed = distributed
        self._mode = PreemptMode(preempt_mode)
        self._asked = False
        self._earlier = None
        self._started = False

    def start(self):
        if self._started:
            raise RuntimeError("PreemptContext.start() was called twice")
        self._started = True
        if current_trial() is None and threading.current_thread() is threading.main_thread():
            self._earlier = signal.signal(signal.SIGTERM, self._ask)
        return self

    def _ask(self, *_):
        # A second SIGTERM ends the process, because the script may never call should_preempt().
        self._asked = True
        signal.signal(signal.SIGTERM, self._earlier or signal.SIG_DFL)

    def close(self):
        if self._earlier is not None and not self._asked:
            signal.signal(signal.SIGTERM, self._earlier)
        self._earlier = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    def should_preempt(self, auto_ack=True):
        """Should the script save a checkpoint and end? By default every rank asks, and all get the same answer."""
        if not self._started:
            raise RuntimeError("should_preempt() before core.init() was entered: use core.init() in a with statement")
        if self._mode == PreemptMode.WorkersAskMaster:
            return self._asked
        if self._mode == PreemptMode.ChiefOnly:
            if self._distributed.rank != 0:
                raise RuntimeError("should_preempt() under PreemptMode.ChiefOnly is for rank 0")
            return self._asked
        # The launcher signals one rank after the other. One signalled rank is enough.
        return self._distributed.broadcast(any(self._distributed.gather(self._asked) or ()))

    def acknowledge_preemption_signal(self):
        pass  # nobody waits for the acknowledgement
