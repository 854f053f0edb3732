"""Hugging Face's Trainer reads batch sizes from its command line, and refuses a configuration that differs."""
import os
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._config import OVERWRITE_KEY, merge, overwrites_of
from ._errors import Error
from ._files import Json, locked, read_json, write_json
from ._trial import CONFIG_VARIABLE

_BATCH_FLAGS = {
    "--per_device_train_batch_size": "train_micro_batch_size_per_gpu",
    "--gradient_accumulation_steps": "gradient_accumulation_steps",
}


def _canonical(flag: str) -> str:
    """The flag with underscores. The Trainer accepts dashes too."""
    return "--" + flag[2:].replace("-", "_") if flag.startswith("--") else flag


def _config_at(args: Sequence[str]) -> Optional[Tuple[int, str]]:
    """The index of the configuration's argument, and the text before the path in it; None: no such argument."""
    for i, argument in enumerate(args):
        if argument.startswith("--deepspeed="):
            return i, "--deepspeed="
        if argument == "--deepspeed" and i + 1 < len(args) and not args[i + 1].startswith("-"):
            return i + 1, ""
    return None


def _with_batch_sizes(args: Sequence[str], config: Json) -> List[str]:
    """`args` with the batch sizes of `config`. For "auto" the flag stays as it is."""
    result = list(args)
    for flag, key in _BATCH_FLAGS.items():
        size = config.get(key)
        if isinstance(size, bool) or not isinstance(size, int):
            continue
        found = False
        for i, argument in enumerate(result):
            name, equals, _ = argument.partition("=")
            if _canonical(name) != flag:
                continue
            found = True
            if equals:
                result[i] = f"{name}={size}"
            elif i + 1 < len(result):
                result[i + 1] = str(size)
            else:
                raise Error(f"{argument} is the last argument: a number must follow it")
        if not found:  # the Trainer's default would differ
            result += [flag, str(size)]
    return result


def get_hf_args_with_overwrites(args: Sequence[str], hparams: Mapping[str, Any]) -> List[str]:
    """The command line `args` of a Hugging Face script, in agreement with its DeepSpeed configuration.

    `hparams["overwrite_deepspeed_args"]` is written into the file of `--deepspeed`, because the Trainer reads that
    file. A lock protects it, because every rank does this. Then --per_device_train_batch_size and
    --gradient_accumulation_steps get the file's numbers, but never "auto". In a trial, and in the full training of an
    experiment file, the file is dsat-host's, and overwrites do not replace its values. Elsewhere, without overwrites,
    `args` is returned unchanged. Raises dsat.Error without `--deepspeed FILE`, or if `args` is no list.
    """
    if isinstance(args, (str, bytes)) or not isinstance(args, Iterable):
        raise Error(f"args is a list of words such as sys.argv[1:], not {args!r}")
    result = list(args)
    overwrites = overwrites_of(hparams)
    given = os.environ.get(CONFIG_VARIABLE)
    if not overwrites and not given:
        return result
    where = _config_at(result)
    if where is None:
        if not overwrites:
            return result  # training without DeepSpeed: dsat-host has changed the command line
        raise Error(f"'{OVERWRITE_KEY}' needs a configuration to write to: add --deepspeed FILE to the arguments")
    position, prefix = where
    if given:
        result[position] = prefix + given  # a script may make its arguments itself, with its own file
    path = result[position][len(prefix):]
    with locked(path):
        before = read_json(path)
        after = merge(overwrites, before) if given else merge(before, overwrites)
        if after != before:
            if given:  # dsat-host recognises the run by that file, so it is not changed
                path = os.path.splitext(path)[0] + "_with_overwrites.json"
                result[position] = prefix + path
            write_json(path, after)
    return _with_batch_sizes(result, after)
