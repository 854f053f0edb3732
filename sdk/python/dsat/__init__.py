"""Helpers for a training script that dsat-host tunes. Outside a tuning run they do nothing.

A DeepSpeed script needs none of them, because the engine follows the protocol. Use them for a loop without that engine
(`StepTimer`, `report`), to add memory and end-to-end time to the engine's report (`dsat_reporting_context`), and for a
script from Determined (`get_ds_config_from_hparams`, `get_hf_args_with_overwrites`, `overwrite_deepspeed_config`). The
package never imports torch itself.

`tune` is the other side: it runs dsat-host on a training command and returns the study. `Searcher` is what a searcher
in Python derives from.
"""
from typing import TYPE_CHECKING, Any

from ._config import get_ds_config_from_hparams, get_hparams, overwrite_deepspeed_config
from ._context import dsat_reporting_context
from ._device import DeviceMemory
from ._errors import Error
from ._huggingface import get_hf_args_with_overwrites
from ._report import report, report_model_info
from ._steps import report_step
from ._timer import StepTimer
from ._trial import Trial, current_trial

if TYPE_CHECKING:
    from ._searcher import Exit, Option, Result, Searcher, Space
    from ._study import Study, tune

__version__ = "1.0.0"


_LATER = {"Study": "_study", "tune": "_study", "Exit": "_searcher", "Option": "_searcher", "Result": "_searcher",
          "Searcher": "_searcher", "Space": "_searcher"}


def __getattr__(name: str) -> Any:
    """What searches and tunes is loaded when it is used: a training script does without it."""
    if name not in _LATER:
        raise AttributeError(f"module 'dsat' has no attribute {name!r}")
    import importlib
    return getattr(importlib.import_module("." + _LATER[name], __name__), name)


__all__ = [
    "DeviceMemory",
    "Error",
    "Exit",
    "Option",
    "Result",
    "Searcher",
    "Space",
    "StepTimer",
    "Study",
    "Trial",
    "current_trial",
    "dsat_reporting_context",
    "get_ds_config_from_hparams",
    "get_hf_args_with_overwrites",
    "get_hparams",
    "overwrite_deepspeed_config",
    "report",
    "report_model_info",
    "report_step",
    "tune",
]
