"""Helpers for a training script that dsat-host tunes. Outside a tuning run they do nothing.

A DeepSpeed script needs none of them, because the engine follows the protocol. Use them for a loop without that engine
(`StepTimer`, `report`), to add memory and end-to-end time to the engine's report (`dsat_reporting_context`), and for a
script from Determined (`get_ds_config_from_hparams`, `get_hf_args_with_overwrites`, `overwrite_deepspeed_config`). The
package never imports torch itself.
"""
from ._config import get_ds_config_from_hparams, get_hparams, overwrite_deepspeed_config
from ._context import dsat_reporting_context
from ._device import DeviceMemory
from ._errors import Error
from ._huggingface import get_hf_args_with_overwrites
from ._report import report, report_model_info
from ._timer import StepTimer
from ._trial import Trial, current_trial

__version__ = "0.1.0"

__all__ = [
    "DeviceMemory",
    "Error",
    "StepTimer",
    "Trial",
    "current_trial",
    "dsat_reporting_context",
    "get_ds_config_from_hparams",
    "get_hf_args_with_overwrites",
    "get_hparams",
    "overwrite_deepspeed_config",
    "report",
    "report_model_info",
]
