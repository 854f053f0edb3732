"""The one exception of this package."""


class Error(ValueError):
    """Wrong use or a damaged file: one line that says what, where, and what to do."""
