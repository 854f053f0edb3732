"""determined.transformers: the callback for Hugging Face's Trainer. Needs transformers."""
from .. import _absent
from ._callback import DetCallback

__all__ = ["DetCallback"]
__getattr__ = _absent.attributes(__name__)
