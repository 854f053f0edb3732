"""Imports from a folder, such as a downloaded checkpoint, which stays out of sys.path afterwards."""
import contextlib
import os
import sys


@contextlib.contextmanager
def import_from_path(path):
    """Within it, `import` looks into `path` first. The modules that came from there are forgotten at its end."""
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
