"""The exception of this package."""


class Error(ValueError):
    """Wrong use or a damaged file. The message is one line: what, where, what to do."""
