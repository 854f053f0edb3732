"""A learning-rate scheduler and the rule for its steps."""
import enum


class LRScheduler:
    """`scheduler` with its StepMode. DeepSpeed's engine itself steps a scheduler that it was given."""

    class StepMode(enum.Enum):
        STEP_EVERY_EPOCH = 1
        STEP_EVERY_BATCH = 2
        MANUAL_STEP = 3
        STEP_EVERY_OPTIMIZER_STEP = 4

    def __init__(self, scheduler, step_mode, frequency=1):
        if not isinstance(step_mode, LRScheduler.StepMode):
            raise ValueError(f"step_mode is {step_mode!r}: use one of LRScheduler.StepMode")
        if frequency < 1:
            raise ValueError(f"frequency is {frequency}: it must be at least 1")
        self._scheduler, self._step_mode, self._frequency = scheduler, step_mode, frequency

    def step(self, *args, **kwargs):
        self._scheduler.step(*args, **kwargs)

    def get_last_lr(self):
        return self._scheduler.get_last_lr()

    def state_dict(self):
        return self._scheduler.state_dict()

    def load_state_dict(self, state_dict):
        self._scheduler.load_state_dict(state_dict)
