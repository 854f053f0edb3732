"""Tuning from Python: `tune` runs dsat-host, a `Study` is what it leaves behind."""
import json
import os
import pathlib
import subprocess
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from ._errors import Error
from ._host import find_host, words_of
from ._live import LiveLine, in_notebook
from ._process import Event, HostProcess

Json = Dict[str, Any]
Path = Union[str, "os.PathLike[str]"]


class Study:
    """A study in its run directory: what `dsat-host show DIR --json` says, read anew for each property."""

    def __init__(self, dir: Path, *, host: Optional[Path] = None) -> None:
        self.dir = pathlib.Path(dir).absolute()
        self._host = find_host(host)
        self._result: Optional[Json] = None

    def _ask(self, *words: str) -> Json:
        done = subprocess.run([self._host, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
            raise Error(lines[0].replace("dsat-host: ", "", 1))
        answer: Json = json.loads(done.stdout)
        return answer

    def _shown(self) -> Json:
        return self._ask("show", str(self.dir), "--json")

    @property
    def status(self) -> str:
        """running, completed, no_best, interrupted or failed."""
        return str(self._result["status"] if self._result else self._shown()["study"]["status"])

    @property
    def reason(self) -> str:
        """Why the study ended, in one line; empty if there is no more to know."""
        return str(self._result["reason"] if self._result else self._shown()["study"].get("reason") or "")

    @property
    def trials(self) -> List[Json]:
        """Every trial: id, kind, config, overrides, outcome, reason, metrics, peak_bytes, slots, times."""
        trials: List[Json] = self._shown()["trials"]
        return trials

    @property
    def best(self) -> Json:
        """trial, config, metrics and command of the best configuration. Raises Error if there is none."""
        return self._ask("best", str(self.dir), "--json")

    @property
    def best_config(self) -> Json:
        """The best DeepSpeed configuration. Raises Error if there is none."""
        config: Json = self.best["config"]
        return config

    @property
    def gain(self) -> Optional[Json]:
        """ratio, low and high of the best over the user's own configuration; None if unknown."""
        if self._result is not None:
            return self._result.get("gain")
        gain: Optional[Json] = self._shown().get("gain")
        return gain

    def frame(self) -> Any:
        """The trials as a pandas frame, a column for each leaf: metrics.throughput, config.zero_optimization.stage."""
        try:
            import pandas
        except ImportError as error:
            raise Error("frame() needs pandas: install it, or use `trials`") from error
        return pandas.json_normalize(self.trials)

    def report(self) -> pathlib.Path:
        """The page of the study, written anew."""
        path = self.dir / "report.html"
        done = subprocess.run([self._host, "report", str(self.dir)], stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        if done.returncode != 0:
            raise Error(done.stderr.decode("utf-8", "replace").strip().replace("dsat-host: ", "", 1))
        return path

    def show(self, height: int = 800) -> Any:
        """The page: in a notebook as a frame in its cell, elsewhere in the web browser."""
        path = self.report()
        if in_notebook():
            import html
            from IPython.display import HTML  # present: this runs in its kernel
            text = html.escape(path.read_text(encoding="utf-8"), quote=True)
            # In an element of its own: IPython warns of a bare frame, which an IFrame of a file could not replace.
            frame = f'<iframe srcdoc="{text}" width="100%" height="{int(height)}" frameborder="0"></iframe>'
            return HTML(f"<div>{frame}</div>")
        import webbrowser
        webbrowser.open(path.as_uri())
        return None

    def resume(self, *, show: bool = True, on_event: Optional[Callable[[Event], None]] = None,
               env: Optional[Dict[str, str]] = None, **options: Any) -> "Study":
        """Continues the study, as `dsat-host resume DIR` does. Options as there: max_trials=64, time_budget="2h"."""
        ended = sum(1 for trial in self.trials if trial["attempt"] > 0 and trial["ended_at"])
        return _run([self._host, "resume"], [*words_of(options), str(self.dir)], None, env, show, on_event, ended)

    def __repr__(self) -> str:
        return f"<dsat.Study {str(self.dir)!r}>"


def tune(command: Sequence[Path], *, show: bool = True, on_event: Optional[Callable[[Event], None]] = None,
         cwd: Optional[Path] = None, env: Optional[Dict[str, str]] = None, host: Optional[Path] = None,
         **options: Any) -> Study:
    """Tunes a training command and returns its study when the search has ended.

    Every long option of dsat-host is a keyword, a switch takes True, a list repeats it: `max_trials=32`,
    `searcher="asha"`, `no_probe=True`. `show`: a line in the terminal or the notebook. `on_event` is called with each
    event (docs/python.md). Raises Error if the study cannot start or dsat-host itself dies; a search that finds nothing
    is a Study whose `status` says so. The first interrupt ends the search gently, and the study is returned; the second
    ends it at once and is raised.
    """
    if isinstance(command, (str, os.PathLike)):
        raise Error("the command is one text: give a list of its words, [\"deepspeed\", \"train.py\", ...]")
    words = words_of(options)
    if command:
        words += ["--", *(os.fspath(word) for word in command)]
    return _run([find_host(host)], words, None if cwd is None else os.fspath(cwd), env, show, on_event)


def _run(program: List[str], words: List[str], cwd: Optional[str], env: Optional[Dict[str, str]], show: bool,
         on_event: Optional[Callable[[Event], None]], ended: int = 0) -> Study:
    live = LiveLine(show, ended)
    seen: Json = {}

    def take(event: Event) -> None:
        if event["event"] in ("start", "result"):
            seen[event["event"]] = event
        live.take(event)
        if on_event is not None:
            on_event(event)

    process = HostProcess(program, words, cwd, env)
    try:
        process.run(take)
    finally:
        live.end()
    if "result" not in seen and not ("start" in seen and process.interrupts):
        error = process.last_error()
        where = f"; dsat.Study({seen['start']['dir']!r}).resume() goes on" if "start" in seen else ""
        raise Error(error + where)
    study = Study(pathlib.Path(cwd or ".") / seen["start"]["dir"], host=program[0])
    # An interrupt during its last words, when the study was saved, leaves no result: the journal has it.
    study._result = seen["result"]["result"] if "result" in seen else None
    return study
