"""Where the program dsat-host is, and how options become its command line."""
import os
import pathlib
import shutil
import sys
import sysconfig
from typing import Any, Dict, Iterator, List, Union

from ._errors import Error

_OURS = ("events", "json", "quiet", "verbose", "version", "help")


def _candidates() -> Iterator[pathlib.Path]:
    yield pathlib.Path(sysconfig.get_path("scripts")) / "dsat-host"  # of this environment
    yield pathlib.Path(sys.executable).parent / "dsat-host"
    package = pathlib.Path(__file__).resolve().parent
    yield package.parents[3] / "bin" / "dsat-host"  # PREFIX/share/dsat/python/dsat
    yield package.parent / "bin" / "dsat-host"  # pip install --target


def find_host(host: Union[str, "os.PathLike[str]", None] = None) -> str:
    """The path of dsat-host: `host`, else $DSAT_HOST, else the one that came with this package, else that of PATH."""
    named = host or os.environ.get("DSAT_HOST")
    if named:
        found = shutil.which(os.fspath(named))
        if found is None:
            raise Error(f"{os.fspath(named)} is no program that can be run: name another by `host` or DSAT_HOST")
        return found
    there = [str(path) for path in _candidates() if path.is_file()]
    for program in there:
        if os.access(program, os.X_OK):
            return program
    found = shutil.which("dsat-host")
    if found is None and there:
        raise Error(f"{there[0]} may not be run: its file system or its mode forbids it; name another by `host`")
    if found is None:
        raise Error("dsat-host is not found: install it, or name it by the argument `host` or the variable DSAT_HOST")
    return found


def words_of(options: Dict[str, Any]) -> List[str]:
    """{"max_trials": 32, "no_probe": True} as ["--max-trials=32", "--no-probe"]; None and False are left out."""
    words: List[str] = []
    for name, value in options.items():
        if name in _OURS:
            raise Error(f"the option {name} is not taken here: events and the result come as Python objects")
        spelling = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(spelling)
            elif one is not None and one is not False:
                words.append(f"{spelling}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return words
