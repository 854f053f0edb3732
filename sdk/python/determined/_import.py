"""Imports from a folder, such as a downloaded checkpoint, without leaving it in sys.path."""
import contextlib
import os
import sys


@contextlib.contextmanager
def import_from_path(path):
    """Inside, `import` looks into `path` first. At the end, modules from there leave sys.modules."""
    folder = os.path.abspath(os.fspath(path))
    before = dict(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or ""
            if os.path.abspath(file).startswith(folder + os.sep):
                if name in before:
                    sys.modules[name] = before[name]
                else:
                    del sys.modules[name]
