"""Determined's dsat command line as a parser, for scripts that build one. dsat-host has its own parser."""
import argparse

import dsat

from ...util import merge_dicts
from . import defaults
from ._helpers import get_dict_from_yaml_or_json_path

_DEFAULTS = defaults.AUTOTUNING_ARG_DEFAULTS


def _base_parser():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("config_path", help="experiment file")
    parser.add_argument("model_dir", help="model directory")
    parser.add_argument("-i", "--include", nargs="+", help="files to put beside the model's")
    for short, name, kind in (("-mt", "max-trials", int), ("-mct", "max-concurrent-trials", int),
                              ("-r", "random-seed", int)):
        parser.add_argument(short, f"--{name}", type=kind, default=_DEFAULTS[name])
    parser.add_argument("-ms", "--max-slots", type=int)
    parser.add_argument("-m", "--metric", default=_DEFAULTS["metric"],
                        choices=defaults.SMALLER_IS_BETTER_METRICS + defaults.LARGER_IS_BETTER_METRICS)
    parser.add_argument("-z", "--zero-stages", type=int, nargs="+", default=_DEFAULTS["zero-stages"], choices=range(4))
    for name in ("start-profile-step", "end-profile-step"):
        parser.add_argument(f"--{name}", type=int, default=_DEFAULTS[name])
    parser.add_argument("--run-full-experiment", action="store_true")
    parser.add_argument("--search-runner-config")
    parser.add_argument("--max-search-runner-restarts", type=int, default=5)
    return parser


def get_full_parser():
    """A parser for the methods asha, binary, random and _test, with their options."""
    parser = argparse.ArgumentParser(prog="dsat")
    methods = parser.add_subparsers(required=True, dest="search_method")
    base = _base_parser()
    own = {
        "_test": (),
        "random": (("trials-per-random-config", int),),
        "binary": (("search-range-factor", float),),
        "asha": (("max-rungs", int), ("min-binary-search-trials", int), ("asha-early-stopping", int), ("divisor", int),
                 ("search-range-factor", float)),
    }
    for method, options in own.items():
        of_method = methods.add_parser(method, parents=[base], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        for name, kind in options:
            of_method.add_argument(f"--{name}", type=kind, default=_DEFAULTS[name])
        if method == "random":
            of_method.add_argument("--early-stopping", type=int)
    return parser


def get_search_runner_config_from_args(args):
    """The experiment in which Determined ran the search. dsat-host runs it here, and reads the same file."""
    if args.search_runner_config is not None:
        return get_dict_from_yaml_or_json_path(args.search_runner_config)
    submitted = get_dict_from_yaml_or_json_path(args.config_path)
    if defaults.CONFIG_KEY not in submitted.get("hyperparameters", {}):
        raise dsat.Error(
            f"{args.config_path}: hyperparameters.{defaults.CONFIG_KEY} is missing: name DeepSpeed's configuration")
    runner = merge_dicts(submitted, {"searcher": {"name": "single", "max_length": 0},
                                     "resources": {"slots_per_trial": 0},
                                     "max_restarts": args.max_search_runner_restarts})
    runner["name"] = f"(DSAT) {submitted.get('name', '')}"
    runner["hyperparameters"] = vars(args)
    return runner
