"""python3 -m determined.exec.harness --train-entrypoint module:Class trains a trial class, as one rank."""
import argparse
import importlib
import logging
import opcode
import os
import random
import sys
import traceback

import dsat

from .. import LOG_FORMAT, _study, core
from .._info import get_cluster_info
from .._trial_context import Environment
from ..errors import InternalException, InvalidExperimentException
from ..launch import _start

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def load_trial_class(name):
    """`module:Class`, looked up in the current folder first. Raises InvalidExperimentException."""
    from ..pytorch.deepspeed import DeepSpeedTrial

    module_name, colon, class_name = name.partition(":")
    if not colon or not module_name or not class_name:
        raise InvalidExperimentException(f"--trial {name}: give module:Class, as in model_def:MyTrial")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0]:
            raise  # an import inside the module failed; that message has the name
        raise InvalidExperimentException(f"--trial {name}: there is no {module_name}.py in {os.getcwd()}") from error
    found = module
    for part in class_name.split("."):
        found = getattr(found, part, None)
    if found is None:
        classes = sorted(key for key, value in vars(module).items() if isinstance(value, type)
                         and issubclass(value, DeepSpeedTrial) and value is not DeepSpeedTrial)
        raise InvalidExperimentException(f"--trial {name}: {module_name} has no class {class_name}; "
                                         f"its trial classes are {', '.join(classes) or 'none'}")
    if not isinstance(found, type) or not issubclass(found, DeepSpeedTrial):
        raise InvalidExperimentException(f"--trial {name}: {class_name} is no DeepSpeedTrial: derive it from "
                                         "determined.pytorch.deepspeed.DeepSpeedTrial")
    return found


def _set_seeds(seed):
    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.random.manual_seed(seed)


def _start_backend():
    """Initialises DeepSpeed's backend. A process without a launcher is a world of one."""
    import deepspeed

    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1")):
        os.environ.setdefault(name, value)
    # Several ranks without a given port have to meet at the same one.
    os.environ.setdefault("MASTER_PORT", _start.port() if os.environ["WORLD_SIZE"] == "1" else "29500")
    if pipeline := getattr(deepspeed, "PipelineEngine", None):
        # It goes wrong by the section `autotuning`. The loop measures it; host/probe/dsat_pipeline.py has the reasons.
        pipeline.autotuning_enabled = lambda engine: False
    if not os.environ.get("DET_MANUAL_INIT_DISTRIBUTED"):
        deepspeed.init_distributed(auto_mpi_discovery=False)


def _environment(info, core_context):
    if info is None:
        return Environment({}, {})
    latest, steps = info.latest_checkpoint, 0
    if latest is not None:
        steps = int(core_context.checkpoint.get_metadata(latest).get("steps_completed", 0))
    return Environment(_study.experiment_config(), info.trial.hparams, info.trial.trial_id, info.trial.experiment_id,
                       info.trial.trial_seed, latest, steps)


def train(name):
    from ..pytorch.deepspeed._loop import Loop

    trial_class = load_trial_class(name)
    _start_backend()
    with core.init(distributed=core.DistributedContext.from_deepspeed()) as core_context:
        env = _environment(get_cluster_info(), core_context)
        _set_seeds(env.trial_seed)
        context = trial_class.trial_context_class(core_context, env)
        Loop(trial_class(context), context).run()


def _is_refusal(error):
    """Does the error come from a `raise` in this package? A bug in the package has no `raise` at its place."""
    if isinstance(error, (InvalidExperimentException, InternalException, dsat.Error)):
        return True
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    return (code.co_filename.startswith(_PACKAGE) and last.tb_lasti >= 0
            and code.co_code[last.tb_lasti] == opcode.opmap["RAISE_VARARGS"])


def _place(error):
    """The line of the model's files that led to the error; empty: none."""
    folder = os.path.realpath(os.getcwd()) + os.sep
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.realpath(frame.filename).startswith(folder)]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="determined.exec.harness", description="Trains a trial class.")
    parser.add_argument("--train-entrypoint", "--trial", metavar="MODULE:CLASS", required=True)
    options, _ = parser.parse_known_args(arguments)
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    try:
        train(options.train_entrypoint)
    except Exception as error:
        if not _is_refusal(error):
            raise
        sys.exit(_place(error) + str(error))


if __name__ == "__main__":
    main()
