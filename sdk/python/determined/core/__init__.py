"""determined.core: contexts for scripts that own their training loop."""
from .. import _absent
from ._checkpoint import CheckpointContext, DownloadMode
from ._context import Context, init
from ._distributed import DistributedContext, DummyDistributedContext
from ._extras import ExperimentalCoreContext, ProfilerContext
from ._preempt import PreemptContext, PreemptMode
from ._searcher import SearcherContext, SearcherMode, SearcherOperation, Unit
from ._train import EarlyExitReason, TensorboardMode, TrainContext

# In Determined these were the classes outside of a cluster. Here there is one class of each.
DummyCheckpointContext = CheckpointContext
DummyPreemptContext = PreemptContext
DummyProfilerContext = ProfilerContext
DummySearcherContext = SearcherContext
DummySearcherOperation = SearcherOperation
DummyTrainContext = TrainContext

__all__ = ["CheckpointContext", "Context", "DistributedContext", "DownloadMode", "DummyDistributedContext",
           "EarlyExitReason", "ExperimentalCoreContext", "PreemptContext", "PreemptMode", "ProfilerContext",
           "SearcherContext", "SearcherMode", "SearcherOperation", "TensorboardMode", "TrainContext", "Unit", "init"]
__getattr__ = _absent.attributes(__name__)
