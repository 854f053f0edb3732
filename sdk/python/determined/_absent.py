"""Names of Determined that its stand-in does not have. They are refused with the reason and the alternative.

A hook at the end of sys.meta_path refuses modules; `__getattr__` of the packages refuses names in them.
"""
import opcode
import sys

_CLUSTER = "it asks Determined's master, and there is none: dsat-host show and the folder of the study have the results"
_NO_DEEPSPEED = ("it trains without DeepSpeed, so dsat has nothing to tune in it: derive from "
                 "determined.pytorch.deepspeed.DeepSpeedTrial, or write the loop with determined.core")
_SEARCH = "searches run in dsat-host: write a searcher plugin (docs/writing-a-searcher.md)"
_ENGINE = ("DeepSpeed's engine does it: "
           "give the engine to context.wrap_model_engine(), and call backward() and step() on it")
_LOOP = "the loop that trains is dsat's own and has no class to replace"
_REASONS = {
    "determined.experimental": _CLUSTER,
    "determined.common": _CLUSTER,
    "determined.cli": _CLUSTER,
    "determined.deploy": _CLUSTER,
    "determined.searcher": _SEARCH,
    "determined.tensorboard":
        "use context.get_tensorboard_writer(), or a writer of your own into core_context.train.get_tensorboard_path()",
    "determined.keras": "TensorFlow does not train with DeepSpeed",
    "determined.lightning": "its Trainer starts DeepSpeed by itself: tune that command with dsat-host as it is",
    "determined.horovod":
        "Horovod and DeepSpeed each want to own the ranks: start the script by determined.launch.deepspeed",
    "determined.launch.horovod": "Horovod and DeepSpeed each want to own the ranks: use determined.launch.deepspeed",
    "determined.pytorch.PyTorchTrial": _NO_DEEPSPEED,
    "determined.pytorch.PyTorchTrialContext": _NO_DEEPSPEED,
    "determined.pytorch.Trainer": _NO_DEEPSPEED,
    "determined.pytorch.init": _NO_DEEPSPEED,
    "determined.pytorch.DeepSpeedTrial": "import it from determined.pytorch.deepspeed",
    "determined.pytorch.DeepSpeedTrialContext": "import it from determined.pytorch.deepspeed",
    "determined.pytorch.deepspeed.DeepSpeedMPU": "use make_deepspeed_mpu(engine.mpu), which makes a ModelParallelUnit",
    "determined.pytorch.deepspeed.DeepSpeedTrialController": _LOOP,
    "DeepSpeedTrial.trial_controller_class": _LOOP,
    "DeepSpeedTrialContext.wrap_model": _ENGINE,
    "DeepSpeedTrialContext.wrap_optimizer": _ENGINE,
    "DeepSpeedTrialContext.wrap_lr_scheduler": _ENGINE,
    "DeepSpeedTrialContext.backward": _ENGINE,
    "DeepSpeedTrialContext.step_optimizer": _ENGINE,
    "DeepSpeedTrialContext.wrap_scaler": "fp16 of DeepSpeed's configuration scales the loss",
    "determined.pytorch.load_trial_from_checkpoint_path":
        "load the folder of the checkpoint with the trial's own load()",
    "determined.pytorch.CheckpointLoadContext": "load the folder of the checkpoint with the trial's own load()",
    "determined.pytorch.dsat.BaseDSATSearchMethod": _SEARCH,
    "determined.pytorch.dsat.RandomDSATSearchMethod": _SEARCH,
    "determined.pytorch.dsat.BinarySearchDSATSearchMethod": _SEARCH,
    "determined.pytorch.dsat.ASHADSATSearchMethod": _SEARCH,
    "determined.pytorch.dsat.TestDSATSearchMethod": _SEARCH,
    "determined.pytorch.dsat.DSATTrial": _SEARCH,
    "determined.pytorch.dsat.DSATTrialTracker": _SEARCH,
    "determined.pytorch.dsat.DSATModelProfileInfoTrial": _SEARCH,
    "determined.pytorch.dsat.DSATSearchData": _SEARCH,
    "determined.pytorch.dsat.ASHADSATSearchData": _SEARCH,
    "determined.pytorch.dsat.get_custom_dsat_exp_conf_from_args": _SEARCH,
    "determined.pytorch.dsat.get_search_method_class": _SEARCH,
}
_DEFAULT = "docs/migrate-from-determined.md lists what there is, and what to use in place of the rest"


def sentence(name):
    """The message of a refusal: the name and the reason, or the alternative."""
    return f"dsat's stand-in for Determined has no {name}: {_REASONS.get(name, _DEFAULT)}"


class _Refuses:
    """The last finder: it is asked only for modules that no other finder knows."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        top = ".".join(name.split(".")[:2])
        if not name.startswith("determined.") or name.rpartition(".")[2].startswith("_"):
            return None
        raise ModuleNotFoundError(sentence(name if name in _REASONS else top if top in _REASONS else name), name=name)


def install():
    sys.meta_path.append(_Refuses)


class Refusing:
    """A base class of contexts: its `__getattr__` refuses every other public name."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(sentence(f"{type(self).__name__}.{name}"))


class Refused:
    """Stands for a refused name. It may be imported and used in annotations; any other use raises the reason."""

    def __init__(self, name):
        self._sentence = sentence(name)

    def _refuse(self, *_, **__):
        raise NotImplementedError(self._sentence)

    __call__ = __mro_entries__ = __getitem__ = _refuse

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(self._sentence)

    def __instancecheck__(self, _):
        return False


def attributes(package):
    """The `__getattr__` of a package: refuses every missing name. Tools ask for names with an underscore."""

    def __getattr__(name, frames=1):
        full = f"{package}.{name}"
        if name.startswith("_"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if full in _REASONS:
            return Refused(full)
        caller = sys._getframe(frames)
        code, at = caller.f_code.co_code, caller.f_lasti
        if 0 <= at < len(code) and code[at] == opcode.opmap["IMPORT_FROM"]:
            raise ImportError(sentence(full))  # Python would replace the message of an AttributeError
        raise AttributeError(sentence(full))

    return __getattr__
