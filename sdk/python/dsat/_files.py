"""JSON files: read as strictly as in dsat-host, written whole or not at all."""
import contextlib
import json
import os
import re
from typing import Any, Dict, Iterator, List, Tuple

from ._errors import Error

Json = Dict[str, Any]

# A comment, or a string, which may contain the signs of a comment.
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def _without_comment(match: "re.Match[str]") -> str:
    text = match.group()
    return text if text.startswith('"') else re.sub(r"[^\n]", " ", text)  # keeps line numbers


def _unique(pairs: List[Tuple[str, Any]]) -> Json:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Error(f"key '{twice}' is there twice in one object: remove one")
    return result


def _refuse_constant(name: str) -> Any:
    raise Error(f"{name} is not JSON: write a number")


def read_json(path: str) -> Json:
    """The object in `path`. Comments and a byte order mark are allowed; duplicate keys and NaN are errors."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        value = json.loads(_STRING_OR_COMMENT.sub(_without_comment, text), object_pairs_hook=_unique,
                           parse_constant=_refuse_constant)
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from error
    except RecursionError as error:
        raise Error(f"{path}: nested too deeply") from error
    except ValueError as error:  # JSON, UTF-8, and the errors above
        raise Error(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise Error(f"{path} holds no JSON object but a {type(value).__name__}")
    return value


def write_json(path: str, value: Json) -> None:
    """Replaces `path`. A reader finds the old file or the whole new one, even after a crash."""
    try:
        text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise Error(f"cannot write {path}: {error}") from error
    temporary = f"{path}.tmp.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise Error(f"cannot write {path}: {error.strerror}") from error


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Excludes other processes that lock `path`. The lock is a file beside `path`, and it stays."""
    import fcntl  # imported here: the rest of the package works on systems without it

    try:
        descriptor = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise Error(f"cannot lock {path}: {path}.lock: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
