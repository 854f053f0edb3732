"""PreemptContext: the order to stop. For the full training it is SIGTERM; a trial of a study gets none.

A trial leaves signals alone: dsat-host ends trials with SIGTERM, and a rank inside a collective must end at once.
"""
import enum
import logging
import os
import signal
import sys
import threading
import time

from dsat import current_trial

from .._absent import Refusing

logger = logging.getLogger("determined.core")
_SAME_ORDER_SECONDS = 5  # a launcher that got the signal passes it on to ranks that have it already


def _end_by_signal_of(parent):
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != parent:
        pass
    os._exit(0)  # as torch's workers do


class PreemptMode(enum.Enum):
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class PreemptContext(Refusing):
    def __init__(self, distributed, preempt_mode=PreemptMode.WorkersAskChief):
        self._distributed = distributed
        self._mode = PreemptMode(preempt_mode)
        self._asked_at = None
        self._earlier = None
        self._started = False

    def start(self):
        if self._started:
            raise RuntimeError("PreemptContext.start() was called twice")
        self._started = True
        if current_trial() is None and threading.current_thread() is threading.main_thread():
            self._earlier = signal.signal(signal.SIGTERM, self._ask)
            os.register_at_fork(after_in_child=self._shield_worker)
        return self

    def _ask(self, *_):
        # A later SIGTERM ends the process, because the script may never call should_preempt().
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        elif time.monotonic() - self._asked_at > _SAME_ORDER_SECONDS:
            signal.signal(signal.SIGTERM, self._earlier or signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    @property
    def _asked(self):
        return self._asked_at is not None

    def _shield_worker(self):
        """In a forked worker. Launchers signal workers, too, and a rank without its data loader's cannot go on."""
        if self._earlier is not None and sys._getframe(1).f_globals.get("__name__") == "multiprocessing.popen_fork":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            threading.Thread(target=_end_by_signal_of, args=(os.getppid(),), daemon=True).start()

    def close(self):
        if self._earlier is not None:
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
