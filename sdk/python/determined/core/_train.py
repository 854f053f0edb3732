"""TrainContext: metrics. Each report is a line of `metrics.jsonl` in the folder of the trial or study."""
import contextlib
import enum
import json
import logging
import math
import os
import pathlib

from dsat import Error

from .._absent import Refusing
from .. import _study
from .._once import say_once

logger = logging.getLogger("determined.core")
METRICS_FILE = "metrics.jsonl"


class EarlyExitReason(enum.Enum):
    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


class TensorboardMode(enum.Enum):
    """Who uploads event files. In both modes they stay in `get_tensorboard_path()`."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"


def as_json(value):
    """`value` with numbers and arrays of numpy and torch as Python's; other objects become text."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): as_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [as_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no NaN
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def append_line(path, line):
    """Appends a line. If a killed training left a torn line, it starts a new one first."""
    with open(path, "a+b") as file:
        if file.seek(0, os.SEEK_END) > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode() + b"\n")


class TrainContext(Refusing):
    def __init__(self, distributed, config, folder):
        self._distributed = distributed
        self._config = config
        self._folder = folder
        self._metadata = None

    def report_training_metrics(self, steps_completed, metrics, batch_metrics=None):
        """Reports metrics of the training at `steps_completed`; call it on rank 0."""
        self._report("training", steps_completed, metrics, batch_metrics)

    def report_validation_metrics(self, steps_completed, metrics):
        """Reports metrics of a validation; call it on rank 0. The value None is an error."""
        for name, value in metrics.items():
            if value is None:
                raise RuntimeError(f"report_validation_metrics: metric '{name}' is None: return a number")
        kept = {name: value for name, value in metrics.items() if not isinstance(value, (bytes, bytearray))}
        if len(kept) < len(metrics):
            say_once(f"metrics that are bytes are left out: {', '.join(sorted(set(metrics) - set(kept)))}")
        self._report("validation", steps_completed, kept, None)

    def report_metrics(self, group, steps_completed, metrics):
        """Reports metrics of a group of the script's own. A group's name has no dot."""
        if "." in group:
            raise ValueError(f"report_metrics: the group {group!r} has a dot in its name: remove the dot")
        self._report(group, steps_completed, metrics, None)

    def _report(self, group, steps_completed, metrics, batch_metrics):
        if not isinstance(metrics, dict):
            raise Error(f"metrics of {group} must be a dictionary of names and values, not {metrics!r}")
        logger.info("%s metrics at step %s: %s", group, steps_completed, metrics)
        entry = {"group": group, "steps_completed": as_json(steps_completed), "metrics": as_json(metrics)}
        if batch_metrics is not None:
            entry["batch_metrics"] = as_json(batch_metrics)
        append_line(self._path(METRICS_FILE), json.dumps(entry))

    def _path(self, name):
        os.makedirs(self._folder, exist_ok=True)
        return os.path.join(self._folder, name)

    def get_tensorboard_path(self):
        """The folder for event files, for `tensorboard --logdir`."""
        path = pathlib.Path(self._path("tensorboard"))
        path.mkdir(exist_ok=True)
        return path

    def upload_tensorboard_files(self, selector=lambda _: True, mangler=lambda path, _: path):
        say_once(f"upload_tensorboard_files() has nothing to do: event files stay in {self.get_tensorboard_path()}")

    def set_status(self, status):
        logger.info("status: %s", status)

    def set_metadata(self, metadata):
        """Keeps `metadata` for get_metadata() of this process."""
        self._metadata = metadata
        return metadata

    def get_metadata(self):
        return self._metadata

    def report_early_exit(self, reason):
        logger.warning("the script ends early: %s", EarlyExitReason(reason).name)

    def report_progress(self, progress):
        """Reports the completed share of the training, from 0 to 1."""
        if not 0 <= progress <= 1:
            raise ValueError(f"report_progress({progress}): give the completed share, from 0 to 1")
        logger.info("progress: %.0f %%", 100 * progress)

    def _reported(self):
        """The entries of `metrics.jsonl`, without torn lines."""
        with contextlib.suppress(OSError), open(os.path.join(self._folder, METRICS_FILE), encoding="utf-8",
                                                errors="replace") as file:
            for line in file:
                with contextlib.suppress(ValueError):
                    yield json.loads(line)

    def get_experiment_best_validation(self):
        """The best reported value of `searcher.metric`; None: no validation yet."""
        searcher = self._config.get("searcher", {})
        values = []
        for entry in self._reported():
            value = entry["metrics"].get(searcher.get("metric"))
            if entry["group"] == "validation" and isinstance(value, (int, float)):
                values.append(float(value))
        if not values:
            return None
        return min(values) if searcher.get("smaller_is_better", True) else max(values)


def make_train_context(distributed, config):
    return TrainContext(distributed, config, _study.folder())
