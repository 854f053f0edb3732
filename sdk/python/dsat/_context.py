"""For loops with DeepSpeed's engine, which writes a trial's result by itself and then leaves with SystemExit."""
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
    """Adds to the engine's file what the engine does not tell. Every rank must call it."""
    keys: Dict[str, Number] = device_keys(memory)
    wall_latency_us = timer.wall_latency_us()
    if wall_latency_us is not None:
        keys["wall_latency"] = wall_latency_us
    if _device.rank() != 0 or not os.path.exists(trial.result_path):
        return
    with contextlib.suppress(Error):  # what the engine wrote stands by itself; a torn file is dsat-host's to judge
        result = read_json(trial.result_path)
        size = timer.whole_model() if trial.model_info else {}
        write_json(trial.result_path, {**keys, **result, **size})


@contextlib.contextmanager
def dsat_reporting_context(core_context: Any = None, op: Any = None, steps_completed: Optional[int] = None, *,
                           timer: Optional[StepTimer] = None,
                           memory: Optional[DeviceMemory] = None) -> Iterator[StepTimer]:
    """Around the engine's forward and step, each batch or the whole loop.

    When the engine ends the trial, rank 0 adds peak and total memory of the device, the number of ranks and, where the
    loop calls `timer.step()` after each optimizer step, the end-to-end `wall_latency` to what the engine wrote. The
    exit, and any error, passes through. Yields `timer`, or a new one; a loop that enters this for each batch passes its
    own. Outside a tuning run nothing happens. The positional arguments are those of Determined's function of this name;
    they are not needed.
    """
    trial = current_trial()
    timer = timer or StepTimer()
    try:
        yield timer
    except SystemExit as end:
        # The engine leaves with status 0 on every rank, so all of them come here; a script that gives up may not.
        if trial is not None and end.code in (None, 0):
            _complete(trial, timer, memory)
        raise
