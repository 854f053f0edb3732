"""python3 -m dsat.autotune ARGUMENTS runs dsat-host with the same arguments, wherever it is installed."""
import os
import shutil
import sys
from typing import Iterator, List, Optional

PROGRAM = "dsat-host"


def _beside(folder: str) -> Iterator[str]:
    """The program's places if this package is in PREFIX/share/dsat/python, or in a source or build tree."""
    for above, below in ((("..",) * 3, ("bin",)), (("..",), ()), (("..",) * 2, ("build", "release")),
                         (("..",) * 2, ("build", "debug"))):
        yield os.path.normpath(os.path.join(folder, *above, *below, PROGRAM))


def find_host() -> Optional[str]:
    """$DSAT_HOST, else the program beside this package, else the first in PATH; None: not found."""
    named = os.environ.get("DSAT_HOST")
    if named:
        return named
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for path in _beside(package):
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return shutil.which(PROGRAM)


def main(arguments: Optional[List[str]] = None) -> None:
    """Replaces this process by dsat-host; does not return."""
    arguments = sys.argv[1:] if arguments is None else arguments
    program = find_host()
    if program is None:
        sys.exit(f"dsat: {PROGRAM} is not in PATH: install it, or set DSAT_HOST to its path")
    try:
        os.execv(program, [PROGRAM, *arguments])
    except OSError as error:
        sys.exit(f"dsat: cannot start {program}: {error.strerror}: set DSAT_HOST to the path of {PROGRAM}")


if __name__ == "__main__":
    main()
