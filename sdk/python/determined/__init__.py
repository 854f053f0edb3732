"""A stand-in for the package `determined`: scripts written for it run under dsat-host, or alone, without a cluster.

It follows the documented behaviour of Determined's Python API as far as one machine can. Outside of an experiment of
dsat-host, `import determined` gives the real package if it is installed. A missing name is refused with the reason.
docs/migrate-from-determined.md has a row for each name.
"""
import os
import sys


def _is_stand_in(folder):
    """Is the package in `folder` a copy of this one? Two copies would give way to each other for ever."""
    return os.path.exists(os.path.join(folder, "_absent.py"))


def _real_spec():
    """The import spec of the real package `determined`, which has code and is no stand-in. None: not installed."""
    from importlib.machinery import PathFinder

    elsewhere = [path for path in sys.path if not _is_stand_in(os.path.join(path or os.getcwd(), __name__))]
    for finder in sys.meta_path:  # editable installs bring finders of their own
        find = getattr(finder, "find_spec", None)
        spec = find and find(__name__, elsewhere if finder is PathFinder else None)
        if spec is not None and spec.origin and not _is_stand_in(os.path.dirname(spec.origin)):
            return spec
    return None


def _give_way(spec):
    """Replaces this package by the real one. The import statement takes the result from sys.modules."""
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


# Within an experiment the real package is of no use: outside its own cluster get_cluster_info() is None.
_spec = None if "DSAT_HPARAMS" in os.environ else _real_spec()
if _spec is not None:
    _give_way(_spec)
else:
    from . import _absent, core, errors, util
    from ._import import import_from_path
    from ._info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo, get_cluster_info
    from ._trial_context import TrialContext
    from .errors import InvalidHP

    __version__ = "0.37.0+dsat"  # the last version of Determined with dsat

    # The format of log lines that Determined's log viewer could filter.
    LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"

    __all__ = ["ClusterInfo", "InvalidHP", "LOG_FORMAT", "RendezvousInfo", "ResourcesInfo", "TrialContext", "TrialInfo",
               "core", "errors", "get_cluster_info", "import_from_path", "util"]
    __getattr__ = _absent.attributes(__name__)
    _absent.install()
