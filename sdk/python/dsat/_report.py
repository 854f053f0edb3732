"""A trial's report to dsat-host: its result file, written by rank 0."""
import math
from typing import Any, Dict, Mapping, Optional, Union

from . import _device
from ._device import DeviceMemory
from ._errors import Error
from ._files import write_json
from ._steps import noted_steps
from ._trial import Trial, current_trial

Number = Union[int, float]

_METRICS = ("FLOPS_per_gpu", "throughput", "latency", "forward", "backward", "step", "fwd", "bwd")
_UNKNOWN = -(2**62)  # below any number of bytes, and of negated bytes


def device_keys(memory: Optional[DeviceMemory] = None) -> Dict[str, Number]:
    """`peak_memory` of the worst rank, `device_memory` of the smallest device, `world_size`; unknown values are absent.

    Every rank must call it.
    """
    memory = memory or DeviceMemory()
    peak, total = memory.peak_bytes(), memory.total_bytes()
    worst = _device.largest_over_ranks([_UNKNOWN if peak is None else peak, _UNKNOWN if total is None else -total])
    keys: Dict[str, Number] = {}
    if worst[0] > 0:
        keys["peak_memory"] = worst[0]
    if worst[1] != _UNKNOWN:
        keys["device_memory"] = -worst[1]
    size = _device.world_size()
    if size is not None:
        keys["world_size"] = size
    return keys


def _checked(values: Mapping[str, Number], what: str) -> Dict[str, Number]:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Error(f"{what} '{name}' is not a number but {value!r}: pass a Python int or float (tensor.item())")
        if not math.isfinite(value) or value < 0:
            raise Error(f"{what} '{name}' is {value}: it must be finite and not negative")
    return dict(values)


def write_result(trial: Trial, result: Mapping[str, Any], memory: Optional[DeviceMemory]) -> None:
    """Writes `result` and the values of the devices on rank 0. Every rank must call it.

    The file names no rank. A file with one comes from DeepSpeed, whose older versions ignored accumulation
    (docs/trial.md).
    """
    keys = device_keys(memory)
    if _device.rank() == 0:
        write_json(trial.result_path, {**keys, **result})


def report(metrics: Mapping[str, Number], *, memory: Optional[DeviceMemory] = None) -> None:
    """Reports the metrics of a run to dsat-host; the script may then end. Every rank calls it, rank 0 writes.

    At least one of `throughput` (samples a second over all devices), `latency` (microseconds of one optimizer step,
    with accumulation), `FLOPS_per_gpu` (FLOP/s), `forward`, `backward` (microseconds of one micro step) and `step`
    (microseconds). Optional: `samples`, `wall_latency` (microseconds, end to end). Other numbers stay in the file. Peak
    and total memory of the device are added. Outside a tuning run it does nothing. Raises dsat.Error for a value that
    is no number, not finite or negative, without a metric, and in a run that asks for the model's size.
    """
    trial = current_trial()
    if trial is None:
        return
    if trial.model_info:
        raise Error("this trial asks for the model's size: call dsat.report_model_info, or use dsat.StepTimer(model)")
    values = _checked(metrics, "metric")
    if not any(name in values for name in _METRICS):
        raise Error(f"report() got none of {', '.join(_METRICS[:6])} but {sorted(values) or 'nothing'}")
    write_result(trial, {**values, **noted_steps()}, memory)


def report_model_info(num_params: int, trainable_num_params: Optional[int] = None,
                      activation_bytes: Optional[int] = None, *, memory: Optional[DeviceMemory] = None) -> None:
    """Reports the size of the model, over all ranks, to dsat-host; the script may then end. Every rank calls it.

    `activation_bytes`: memory of a device that one forward pass with the configured micro batch leaves allocated. Does
    nothing unless the trial asks for the model's size. Raises dsat.Error for a value that is no number.
    """
    trial = current_trial()
    if trial is None or not trial.model_info:
        return
    trainable = num_params if trainable_num_params is None else trainable_num_params
    info: Dict[str, Number] = {"num_params": num_params, "trainable_num_params": trainable}
    if activation_bytes is not None:
        info["activation_mem_per_gpu"] = activation_bytes
    info = _checked(info, "model size")
    if num_params < 1:
        raise Error(f"num_params is {num_params}: pass the number of the whole model's parameters")
    if trainable > num_params:
        raise Error(f"trainable_num_params is {trainable}, but num_params, of the whole model, is {num_params}")
    write_result(trial, info, memory)
