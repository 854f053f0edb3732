"""Shared parts of the launch modules: arguments, devices, port, and the start of the launcher."""
import os
import shutil
import socket
import sys


def slots():
    """The ids of the devices that this process may use; empty without accelerators."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        if os.environ.get(name):
            return [part.strip() for part in os.environ[name].split(",") if part.strip()]
    try:
        import torch
    except ImportError:
        return []
    return [str(i) for i in range(torch.cuda.device_count())]


def port():
    """MASTER_PORT, else a free port, because two jobs on one machine may not share a fixed one."""
    given = os.environ.get("MASTER_PORT")
    if given:
        return given
    with socket.socket() as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


def command(arguments, module):
    """The command to launch: the script of the arguments, or the harness for --trial module:Class."""
    words = list(arguments)
    if words and words[0] == "--":
        words.pop(0)
    trial = None
    if words and words[0].partition("=")[0] in ("--trial", "--train-entrypoint"):
        flag = words.pop(0)
        trial = flag.partition("=")[2] or (words.pop(0) if words else "")
    if trial is not None:
        if ":" not in trial:
            sys.exit(f"{module}: --trial {trial}: give module:Class, as in model_def:MyTrial")
        return [sys.executable, "-m", "determined.exec.harness", "--train-entrypoint", trial, *words]
    if not words:
        sys.exit(f"{module}: give the script that trains, or --trial module:Class")
    return words


def split_options(arguments, always=False):
    """(the launcher's own options, the rest), as in Determined: the options stand before `--`.

    Without `always` they are split off only if an option comes first, since a script may have its own `--`."""
    given = list(arguments)
    first = given[0] if given else ""
    names_trial = first.partition("=")[0] in ("--trial", "--train-entrypoint")
    begins = first.startswith("-") and first != "--" and not names_trial
    if "--" not in given or not (always or begins):
        return [], given
    at = given.index("--")
    return given[:at], given[at + 1:]


def become(words):
    sys.stdout.flush()
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.exit(f"cannot start {words[0]}: {error.strerror}")


def launcher(name):
    return shutil.which(name)
