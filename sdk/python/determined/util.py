"""The helpers of determined.util that scripts use."""
import copy


def merge_dicts(base, source):
    """A copy of `base` with the leaves of `source` over it. The arguments do not change."""
    merged = copy.deepcopy(base)
    for key, value in source.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = merge_dicts(merged[key], value) if both else copy.deepcopy(value)
    return merged


def is_overridden(method, base):
    """Does the object of this bound method override the method of `base`?"""
    return getattr(type(method.__self__), method.__name__) is not getattr(base, method.__name__)
