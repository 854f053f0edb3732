"""Timing of a training loop without DeepSpeed's engine."""
import contextlib
import statistics
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import _device
from ._device import DeviceMemory
from ._errors import Error
from ._report import Number, report, report_model_info
from ._steps import report_step
from ._trial import Trial, current_trial


def _count_params(model: Any) -> Tuple[int, int]:
    """All parameters and trained ones. At stage 3 DeepSpeed keeps the size of a released parameter in ds_numel."""
    sizes = [(int(getattr(p, "ds_numel", None) or p.numel()), bool(p.requires_grad)) for p in model.parameters()]
    return sum(size for size, _ in sizes), sum(size for size, trained in sizes if trained)


class StepTimer:
    """Measures the optimizer steps of the profile window, reports them, and ends the trial.

        timer = dsat.StepTimer(model)
        for batch in loader:
            with timer.forward():
                loss = model(batch)
            with timer.backward():
                loss.backward()
            with timer.optimizer():
                optimizer.step()
            timer.step()

    The three phases are optional; without them a run that asks for the model's size ends at the first step(). With
    accumulation, a micro step enters each phase once, and an optimizer step calls step() once. The loop must have
    end_profile_step + 1 optimizer steps. Every rank makes the same calls. Outside a tuning run nothing happens.

    `num_params`: of the whole model, if `model` is only this rank's part (FSDP, a pipeline's stage).
    `trainable_num_params`: how many of them are trained. Default: the share in this rank's part.
    `flops_per_sample`: forward and backward. Without it the result has no FLOPS_per_gpu, so tune for throughput.
    `memory`: for devices that torch does not count.
    """

    def __init__(self, model: Any = None, *, num_params: Optional[int] = None,
                 trainable_num_params: Optional[int] = None, flops_per_sample: Optional[float] = None,
                 memory: Optional[DeviceMemory] = None) -> None:
        self._trial: Optional[Trial] = current_trial()
        self._model = model
        self._num_params = num_params
        self._trainable_num_params = trainable_num_params
        self._flops_per_sample = flops_per_sample
        self._memory = memory or DeviceMemory()
        self._steps = 0  # completed steps
        self._began = self._now() if self._trial is not None and self._trial.start_step == 0 else 0.0
        self._latest = self._began
        self._step_seconds: List[float] = []  # of each step of the window
        self._phases: Dict[str, Tuple[float, int]] = {}  # seconds, number of times

    def forward(self) -> "contextlib.AbstractContextManager[None]":
        """A context manager for the forward pass of one micro step."""
        if self._trial is not None and self._trial.model_info:
            return self._measure_activations()
        return self._phase("forward")

    def backward(self) -> "contextlib.AbstractContextManager[None]":
        """A context manager for the backward pass of one micro step."""
        return self._phase("backward")

    def optimizer(self) -> "contextlib.AbstractContextManager[None]":
        """A context manager for the optimizer's step."""
        return self._phase("step")

    def step(self, loss: Any = None, grad_norm: Any = None) -> None:
        """To be called after each optimizer step. At the end of a trial it reports and raises SystemExit(0).

        `loss`, `grad_norm`: as `report_step` takes them.
        """
        trial = self._trial
        if trial is None:
            return
        if trial.model_info:
            self._tell_model(None)
        if loss is not None or grad_norm is not None:
            report_step(loss, grad_norm)
        self._steps += 1
        if self._steps == trial.start_step:
            self._began = self._latest = self._now()
        elif self._steps > trial.end_step:
            self._note_step()
            report(self._metrics(trial), memory=self._memory)
            raise SystemExit(0)
        elif self._in_window():
            self._note_step()

    def wall_latency_us(self) -> Optional[float]:
        """Microseconds of one optimizer step with everything else in the loop; None: not measured yet."""
        if self._trial is None or self._steps <= self._trial.start_step:
            return None
        return self._mean_step_us(self._trial)

    def whole_model(self) -> Dict[str, Number]:
        """The model's size if `num_params` was given. It replaces an engine's count, which may be of one stage."""
        if self._num_params is None:
            return {}
        total, trained = self._model_size()
        return {"num_params": total, "trainable_num_params": trained}

    def _mean_step_us(self, trial: Trial) -> float:
        return (self._latest - self._began) * 1e6 / (self._steps - trial.start_step)

    def _note_step(self) -> None:
        """Notes the end of a step of the window. _now() waits for the device, or only its requests would count."""
        now = self._now()
        self._step_seconds.append(now - self._latest)
        self._latest = now

    def _now(self) -> float:
        _device.synchronize()
        return time.perf_counter()

    def _in_window(self) -> bool:
        return self._trial is not None and not self._trial.model_info and self._steps >= self._trial.start_step

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        if not self._in_window():
            yield
            return
        began = self._now()
        yield
        seconds, times = self._phases.get(name, (0.0, 0))
        self._phases[name] = (seconds + self._now() - began, times + 1)

    @contextlib.contextmanager
    def _measure_activations(self) -> Iterator[None]:
        before = self._memory.used_bytes()
        yield
        after = self._memory.used_bytes()
        self._tell_model(None if before is None or after is None else max(0, after - before))

    def _tell_model(self, activation_bytes: Optional[int]) -> None:
        if self._model is None and self._num_params is None:
            raise Error("this trial asks for the model's size: create dsat.StepTimer(model) or StepTimer(num_params=N)")
        total, trained = self._model_size()
        report_model_info(total, trained, activation_bytes, memory=self._memory)
        raise SystemExit(0)

    def _model_size(self) -> Tuple[int, int]:
        """All and trained parameters of the whole model."""
        total = trained = 0
        if self._model is not None:
            total, trained = _count_params(self._model)
        if self._num_params is not None:  # the whole model has the same trained share as this rank's part
            trained = self._num_params * trained // total if total else self._num_params
            total = self._num_params
        if self._trainable_num_params is not None:
            trained = self._trainable_num_params
        return total, trained

    def _metrics(self, trial: Trial) -> Dict[str, Number]:
        metrics: Dict[str, Number] = {name: seconds * 1e6 / times for name, (seconds, times) in self._phases.items()}
        latency_us = statistics.median(self._step_seconds) * 1e6  # one slow step has little effect on the median
        metrics["latency"], metrics["wall_latency"] = latency_us, self._mean_step_us(trial)
        if len(self._step_seconds) > 1:
            metrics["latency_steps"] = len(self._step_seconds)
            metrics["latency_spread"] = statistics.stdev(self._step_seconds) * 1e6 / latency_us
        train_batch = trial.config.get("train_batch_size")
        if isinstance(train_batch, int):
            metrics["throughput"] = train_batch * 1e6 / latency_us
            metrics["samples"] = train_batch * (self._steps - trial.start_step)
        micro, accumulation = (trial.config.get(key) for key in ("train_micro_batch_size_per_gpu",
                                                                  "gradient_accumulation_steps"))
        if self._flops_per_sample is not None and isinstance(micro, int) and isinstance(accumulation, int):
            metrics["FLOPS_per_gpu"] = self._flops_per_sample * micro * accumulation * 1e6 / latency_us
        return metrics
