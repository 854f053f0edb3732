"""overwrite_deepspeed_config with the strict argument types of Determined's."""
from collections.abc import Mapping

import dsat


def overwrite_deepspeed_config(base_ds_config, source_ds_dict):
    """A DeepSpeed configuration (a path or a dictionary) with the leaves of `source_ds_dict` over it."""
    if not isinstance(base_ds_config, (str, Mapping)):
        raise TypeError(f"overwrite_deepspeed_config: the base is a path or a dictionary, not {base_ds_config!r}")
    if not isinstance(source_ds_dict, Mapping):
        raise TypeError(f"overwrite_deepspeed_config: the second argument is a dictionary, not {source_ds_dict!r}")
    return dsat.overwrite_deepspeed_config(base_ds_config, source_ds_dict)
