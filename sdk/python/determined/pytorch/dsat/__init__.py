"""determined.pytorch.dsat: helpers for a tuned script. dsat-host does the search."""
from dsat import get_ds_config_from_hparams, get_hf_args_with_overwrites

from ... import _absent
from . import defaults
from ._helpers import (dsat_reporting_context, get_batch_config_from_mbs_gas_and_slots, get_dict_from_yaml_or_json_path,
                       get_random_zero_optim_config, smaller_is_better)
from ._parser import get_full_parser, get_search_runner_config_from_args

__all__ = ["defaults", "dsat_reporting_context", "get_batch_config_from_mbs_gas_and_slots",
           "get_dict_from_yaml_or_json_path", "get_ds_config_from_hparams", "get_full_parser",
           "get_hf_args_with_overwrites", "get_random_zero_optim_config", "get_search_runner_config_from_args",
           "smaller_is_better"]
__getattr__ = _absent.attributes(__name__)
