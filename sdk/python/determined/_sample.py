"""Values of an experiment file's hyperparameters, for a context that no search has given values."""
import random

from .errors import InvalidExperimentException

_VALUES = {
    "const": (("val",), lambda val: val),
    "categorical": (("vals",), random.choice),
    "int": (("minval", "maxval"), random.randint),
    "double": (("minval", "maxval"), random.uniform),
    "log": (("base", "minval", "maxval"), lambda base, low, high: base ** random.uniform(low, high)),
}


def sample_hyperparameters(given, place="hyperparameters"):
    """`given` with the value of each constant, and of each choice and range one of its values."""
    if not isinstance(given, dict):
        return given
    if given.get("type") not in _VALUES:  # a section, or an optimizer of a DeepSpeed configuration
        return {name: sample_hyperparameters(value, f"{place}.{name}") for name, value in given.items()}
    keys, draw = _VALUES[given["type"]]
    try:
        return draw(*(given[key] for key in keys))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidExperimentException(f"{place} is {given!r}: {given['type']} has {', '.join(keys)}") from error
