"""One line about a running study, redrawn in place: on a terminal or in a notebook. Elsewhere nothing."""
import sys
from typing import Any, Dict, Optional

Event = Dict[str, Any]


def in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "ipykernel" in sys.modules


class LiveLine:
    def __init__(self, show: bool, ended: int = 0) -> None:
        """`ended`: trials of the study that have ended before."""
        self._notebook: Any = None
        self._terminal = show and not in_notebook() and sys.stderr is not None and sys.stderr.isatty()
        if show and in_notebook():
            from IPython.display import display  # present: this runs in its kernel
            self._notebook = display({"text/plain": "dsat: starting"}, raw=True, display_id=True)
        self._start: Event = {}
        self._ended = ended
        self._running = 0
        self._best: Optional[Event] = None

    def take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "start":
            self._start = event
        elif kind == "started":
            self._running += 1
        elif kind == "ended":
            self._ended += 1
            self._running = max(0, self._running - 1)
        elif kind == "best":
            self._best = event["best"]
        elif kind == "log" and event["severity"] in ("warning", "error"):
            self._print(event["severity"] + ": " + event["message"])
        self._draw()

    def end(self) -> None:
        if self._terminal:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def text(self) -> str:
        limit = self._start.get("max_trials")
        parts = [f"{self._ended} of {limit} trials" if limit else f"{self._ended} trials", f"{self._running} running"]
        if self._best is not None:
            parts.append(f"best {self._start.get('metric')} {self._best['metric']:.4g} (trial {self._best['trial']})")
        return "dsat: " + ", ".join(parts)

    def _print(self, line: str) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K" + line + "\n")
        elif self._notebook is not None:
            print(line)

    def _draw(self) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K" + self.text())
            sys.stderr.flush()
        elif self._notebook is not None:
            self._notebook.update({"text/plain": self.text()}, raw=True)
