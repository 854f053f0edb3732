"""core.init(): the contexts of one script, and their end."""
import contextlib
import logging
import os

from .._absent import Refusing
from .. import _study
from .._once import say_once
from ..errors import InvalidHP
from ._checkpoint import OWN_STORAGE, CheckpointContext
from ._distributed import DummyDistributedContext
from ._extras import ExperimentalCoreContext, ProfilerContext
from ._preempt import PreemptContext, PreemptMode
from ._searcher import make_searcher_context
from ._train import EarlyExitReason, make_train_context

logger = logging.getLogger("determined.core")


class Context(Refusing):
    """`distributed`, `train`, `searcher`, `checkpoint`, `preempt`, `profiler`, `experimental`, `info`."""

    def __init__(self, *, checkpoint, distributed, preempt, train, searcher,
                 profiler=None, experimental=None, info=None):
        self.checkpoint = checkpoint
        self.distributed = distributed
        self.preempt = preempt
        self.train = train
        self.searcher = searcher
        self.profiler = profiler or ProfilerContext()
        self.experimental = experimental or ExperimentalCoreContext()
        self.info = info

    def start(self):
        self.preempt.start()

    def __enter__(self):
        self.start()
        return self

    def alert(self, title=None, description=None, level=None):
        """Writes a log line, because there is nobody to send the alert to."""
        say_once("core_context.alert() goes to the log")
        logger.warning("alert: %s %s", title or "", description or "")

    def close(self, exc_type=None, exc_val=None, exc_tb=None):
        self.preempt.close()
        self.distributed.close()
        if isinstance(exc_type, type) and issubclass(exc_type, InvalidHP):
            self.train.report_early_exit(EarlyExitReason.INVALID_HP)

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close(exc_type, exc_val, exc_tb)
        if isinstance(exc_type, type) and issubclass(exc_type, InvalidHP):
            raise SystemExit(f"InvalidHP: {exc_val or 'the script refuses these hyperparameters'}")


def _several_ranks():
    return os.environ.get("WORLD_SIZE", "1").isdigit() and int(os.environ.get("WORLD_SIZE", "1")) > 1


def init(*, distributed=None, checkpoint_storage=None, preempt_mode=PreemptMode.WorkersAskChief, tensorboard_mode=None):
    """The contexts of this script, for a `with` statement. Several ranks need `distributed`.

    `checkpoint_storage`: a folder in place of `checkpoints` in the study's folder.
    """
    from .._info import get_cluster_info

    if distributed is None:
        if _several_ranks():
            raise ValueError("core.init() needs distributed= where a script has several ranks: "
                             "core.DistributedContext.from_deepspeed() or from_torch_distributed()")
        distributed = DummyDistributedContext()
    info = get_cluster_info()
    config = _study.experiment_config() if info is not None else {}
    checkpoint = CheckpointContext(distributed, _storage(checkpoint_storage))

    def on_completed(metric):
        with contextlib.suppress(OSError):  # a full disk does not undo a completed training
            checkpoint.on_completed()

    return Context(checkpoint=checkpoint, distributed=distributed, preempt=PreemptContext(distributed, preempt_mode),
                   train=make_train_context(distributed, config),
                   searcher=make_searcher_context(distributed, config, on_completed), info=info)


def _storage(given):
    """The folder for checkpoints. It replaces storage of Determined's, such as S3 or a shared file system."""
    if isinstance(given, (str, os.PathLike)):
        if "://" in os.fspath(given):
            say_once(f"checkpoints are not sent to {given}: they stay in {os.path.join(_study.folder(), OWN_STORAGE)}")
        else:
            return os.fspath(given)
    return os.path.join(_study.folder(), OWN_STORAGE)
