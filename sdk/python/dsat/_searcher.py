"""What a searcher in Python derives from and works with (docs/writing-a-searcher.md)."""
import random
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import Error

Json = Dict[str, Any]
Value = Union[int, float, bool, str]

OUTCOMES = ("completed", "out_of_memory", "failed", "timed_out", "invalid_config", "stopped", "lost",
            "diverged")


class Option:
    """An option of a searcher: `dsat-host --searcher my.py:MySearch --factor 3`. The type is that of `default`."""

    def __init__(self, name: str, default: Value, help: str, *, min: Optional[float] = None,
                 max: Optional[float] = None, choices: Optional[Sequence[str]] = None) -> None:
        kinds = {bool: "bool", int: "int", float: "number", str: "choice" if choices else "string"}
        if type(default) not in kinds:
            raise Error(f"option {name}: its default is a {type(default).__name__}: give a number, a bool or a text")
        self.json: Json = {"name": name, "type": kinds[type(default)], "default": default, "help": help}
        for key, value in (("min", min), ("max", max), ("choices", choices and list(choices))):
            if value is not None:
                self.json[key] = value


class Result(NamedTuple):
    """The measurements of a completed trial, by canonical names: `result.metrics.get(study["metric"])`."""
    trial: int
    step: int
    metrics: Dict[str, float]


class Exit(NamedTuple):
    """The end of a trial. peak_bytes and peak_above_bytes are None if unknown."""
    trial: int
    outcome: str  # one of OUTCOMES
    reason: str
    peak_bytes: Optional[int]
    peak_above_bytes: Optional[int]  # out of memory: the peak would have been larger
    allocator_retries: int
    exit_code: int
    term_signal: int
    attempt: int


class Space:
    """The space of a study, `Space(study["space"])`: which keys may take which values, by ZeRO stage."""

    def __init__(self, space: Json) -> None:
        self.min_micro_batch: int = space["min_micro_batch"]
        self.max_micro_batch: Optional[int] = space.get("max_micro_batch")
        self._divides: Optional[int] = space.get("micro_batch_divides")
        self._axes: Dict[int, List[Tuple[str, List[Any]]]] = {
            stage["stage"]: [(axis["key"], axis["values"]) for axis in stage["axes"]] for stage in space["stages"]}

    @property
    def stages(self) -> List[int]:
        return list(self._axes)

    def axes(self, stage: int) -> List[Tuple[str, List[Any]]]:
        """(dotted key, its values) for all keys of the stage but stage and micro batch."""
        return self._axes[stage]

    def allows_micro_batch(self, micro_batch: int) -> bool:
        return (self.min_micro_batch <= micro_batch
                and (self.max_micro_batch is None or micro_batch <= self.max_micro_batch)
                and (self._divides is None or self._divides % micro_batch == 0))

    def overrides(self, stage: int, micro_batch: int, values: Sequence[Any]) -> Json:
        """The overrides of one point; `values`: one for each of axes(stage), in that order."""
        axes = self._axes[stage]
        if len(values) != len(axes):
            raise Error(f"{len(values)} values for the {len(axes)} axes of stage {stage}")
        out: Json = {"zero_optimization": {"stage": stage}}
        for (key, _), value in zip(axes, values):
            *path, leaf = key.split(".")
            inner = out
            for part in path:
                inner = inner.setdefault(part, {})
            inner[leaf] = value
        out["train_micro_batch_size_per_gpu"] = micro_batch
        return out


class Searcher:
    """A searcher. `dsat-host --searcher my.py:MySearch` runs it in a process of its own, by the rules of all searchers.

    Write `start`, `on_result` and `on_trial_exited`; and both or neither of `save` and `restore`, without which a
    resumed study hands over its events again. It has to answer equal events equally: draw from `self.random`.
    """

    version = "1.0.0"
    summary = ""  # one line; else the first of the class's docstring
    options: Sequence[Option] = ()
    state_version = 1
    study: Json = {}  # wishes, if the user gives no option: {"zero_stages": [1, 2]}

    def __init__(self, host: Any, options: Dict[str, Value], seed: int) -> None:
        """`options` by name. A class that overrides this calls it first."""
        self._host = host
        self.option = options
        self.random = random.Random(seed)

    def start(self, study: Json) -> None:
        """The first event: ask for the first trials. `study`: docs/study.md."""
        raise NotImplementedError("write start(self, study)")

    def on_result(self, result: Result) -> None:
        """A completed trial's metrics, before its exit."""

    def on_trial_exited(self, exit: Exit) -> None:
        """Each trial's end, once."""
        raise NotImplementedError("write on_trial_exited(self, exit)")

    def create_trial(self, overrides: Json, *, note: str = "", parent: Optional[int] = None,
                     repeat: bool = False) -> Optional[int]:
        """Asks for a trial: the id, or None if the trial limit is reached."""
        trial: Optional[int] = self._host.create_trial(overrides, note, parent, repeat)
        return trial

    def stop_trial(self, trial: int) -> None:
        self._host.stop_trial(trial)

    def finish(self, reason: str, best: Optional[int] = None) -> None:
        """Ends the search. `best`: the completed trial that the searcher believes best."""
        self._host.finish(reason, best)

    def log(self, message: str, severity: str = "info") -> None:
        """A line of the study's log: debug, info, warning or error. From any thread."""
        self._host.log(message, severity)
