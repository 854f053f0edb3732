"""Times a training loop that has no DeepSpeed engine to do so."""
import contextlib
import statistics
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import _device
from ._device import DeviceMemory
from ._errors import Error
from ._report import Number, report, report_model_info
from ._trial import Trial, current_trial


def _count_params(model: Any) -> Tuple[int, int]:
    """All and trained parameters. DeepSpeed's stage 3 leaves the true size of a released parameter in ds_numel."""
    sizes = [(int(getattr(p, "ds_numel", None) or p.numel()), bool(p.requires_grad)) for p in model.parameters()]
    return sum(size for size, _ in sizes), sum(size for size, trained in sizes if trained)


class StepTimer:
    """Measures the optimizer steps of the profile window end to end, reports them, and ends the trial.

        timer = dsat.StepTimer(model)
        for batch in loader:
            with timer.forward():
                loss = model(batch)
            with timer.backward():
                loss.backward()
            with timer.optimizer():
                optimizer.step()
            timer.step()

    The three phases are optional, but where they are left out a run that asks for the model's size goes on to the first
    step(). With accumulation they are entered once a micro step, step() is called once an optimizer step. The loop must
    last for end_profile_step + 1 of them. Every rank makes the same calls. Outside a tuning run nothing happens.

    `num_params`: of the whole model, where `model` holds only this rank's part (FSDP, a pipeline's stage);
    `trainable_num_params`: those of them that are trained; without it the share of this rank's part.
    `flops_per_sample`: forward and backward; without it the result has no FLOPS_per_gpu, so tune for throughput.
    `memory`: of devices that torch keeps no account of.
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
        self._steps = 0  # completed
        self._began = self._now() if self._trial is not None and self._trial.start_step == 0 else 0.0
        self._latest = self._began
        self._step_seconds: List[float] = []  # of the window, one for each step
        self._phases: Dict[str, Tuple[float, int]] = {}  # seconds, times entered

    def forward(self) -> "contextlib.AbstractContextManager[None]":
        """Around the forward pass of one micro step."""
        if self._trial is not None and self._trial.model_info:
            return self._measure_activations()
        return self._phase("forward")

    def backward(self) -> "contextlib.AbstractContextManager[None]":
        """Around the backward pass of one micro step."""
        return self._phase("backward")

    def optimizer(self) -> "contextlib.AbstractContextManager[None]":
        """Around the optimizer's step."""
        return self._phase("step")

    def step(self) -> None:
        """After each optimizer step. At the end of a trial it reports and raises SystemExit(0)."""
        trial = self._trial
        if trial is None:
            return
        if trial.model_info:
            self._tell_model(None)
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
        """Microseconds of one optimizer step, all that the loop does included; None: nothing was measured yet."""
        if self._trial is None or self._steps <= self._trial.start_step:
            return None
        return self._mean_step_us(self._trial)

    def whole_model(self) -> Dict[str, Number]:
        """Its size where `num_params` gave it. It goes before what an engine counts: a pipeline's, its own stage."""
        if self._num_params is None:
            return {}
        total, trained = self._model_size()
        return {"num_params": total, "trainable_num_params": trained}

    def _mean_step_us(self, trial: Trial) -> float:
        return (self._latest - self._began) * 1e6 / (self._steps - trial.start_step)

    def _note_step(self) -> None:
        """A step of the window has ended. Without a wait for the device it would be the time of its requests only."""
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
        if self._num_params is not None:  # the share that is trained is that of this rank's part
            trained = self._num_params * trained // total if total else self._num_params
            total = self._num_params
        if self._trainable_num_params is not None:
            trained = self._trainable_num_params
        return total, trained

    def _metrics(self, trial: Trial) -> Dict[str, Number]:
        metrics: Dict[str, Number] = {name: seconds * 1e6 / times for name, (seconds, times) in self._phases.items()}
        latency_us = statistics.median(self._step_seconds) * 1e6  # one slow step counts little in it
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
