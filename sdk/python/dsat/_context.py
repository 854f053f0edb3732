"""For loops with DeepSpeed's engine, which writes a trial's result itself and then raises SystemExit."""
import contextlib
import os
from typing import Any, Dict, Iterator, Optional

from . import _device
from ._device import DeviceMemory
from ._errors import Error
from ._files import read_json, write_json
from ._report import Number, device_keys
from ._timer import StepTimer
from ._trial import Trial, current_trial


def _complete(trial: Trial, timer: StepTimer, memory: Optional[DeviceMemory]) -> None:
    """Adds values that the engine does not report to its file. Every rank must call it."""
    keys: Dict[str, Number] = device_keys(memory)
    wall_latency_us = timer.wall_latency_us()
    if wall_latency_us is not None:
        keys["wall_latency"] = wall_latency_us
    if _device.rank() != 0 or not os.path.exists(trial.result_path):
        return
    with contextlib.suppress(Error):  # the engine's file stays valid without them; dsat-host judges a torn one
        result = read_json(trial.result_path)
        size = timer.whole_model() if trial.model_info else {}
        write_json(trial.result_path, {**keys, **result, **size})


@contextlib.contextmanager
def dsat_reporting_context(core_context: Any = None, op: Any = None, steps_completed: Optional[int] = None, *,
                           timer: Optional[StepTimer] = None,
                           memory: Optional[DeviceMemory] = None) -> Iterator[StepTimer]:
    """Wraps the engine's forward and step, for each batch or for the whole loop.

    When the engine ends the trial, rank 0 adds to the engine's file the device's peak and total memory, the number of
    ranks and, if the loop calls `timer.step()` after each optimizer step, the end-to-end `wall_latency`. The exit and
    any error pass through. Yields `timer` or a new one; a loop that enters this for each batch passes its own. Outside
    a tuning run nothing happens. The positional arguments exist for scripts written for Determined; they are not used.
    """
    trial = current_trial()
    timer = timer or StepTimer()
    try:
        yield timer
    except SystemExit as end:
        # The engine exits with status 0 on every rank, so all of them get here. Another status is the script's own.
        if trial is not None and end.code in (None, 0):
            _complete(trial, timer, memory)
        raise
