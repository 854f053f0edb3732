"""Merges a configuration over the one that a script builds in Python and gives to deepspeed.initialize.

sitecustomize.py imports this file if DSAT_INJECT names the configuration (`dsat-host --inject`), and calls it once
`deepspeed` has been imported. In any doubt it does nothing and says why, in one line of rank 0 on standard error. None
of its failures reaches the script. docs/launchers.md has more.
"""
import atexit
import copy
import inspect
import json
import os
import sys

NOT_INJECTED = "dsat: the configuration was not injected: "
# Parameters of deepspeed.initialize.
CONFIG, CONFIG_PARAMS, ARGUMENTS = "config", "config_params", "args"
OPTIMIZER, PARAMETERS = "optimizer", "model_parameters"


class Doubt(Exception):
    pass


def say(text):
    try:
        if os.environ.get("RANK", "0") == "0":
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
    except Exception:  # the script has closed it
        pass


class Injection(object):
    def __init__(self, file):
        self.file = file
        self.pid = os.getpid()
        self.given = None  # the script's own configuration of its first engine
        self.has_spoken = False

    def after_import(self, module):
        """`module` is deepspeed."""
        atexit.register(self.leave)
        initialize = module.initialize

        def initialize_with_configuration(*arguments, **named):
            try:
                arguments, named = self.changed(initialize, arguments, named)
            except Doubt as doubt:
                self.say_not(doubt)
            except Exception as error:
                self.say_not("%s: %s" % (type(error).__name__, error))
            return initialize(*arguments, **named)

        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(initialize_with_configuration, attribute, getattr(initialize, attribute, None))
        initialize_with_configuration.__wrapped__ = initialize
        module.initialize = initialize_with_configuration

    def say_not(self, why):
        self.has_spoken = True
        say(NOT_INJECTED + " ".join(str(why).split())[:300])

    def leave(self):
        """At exit: a rank that made no engine to train."""
        if self.given is None and not self.has_spoken and "RANK" in os.environ and os.getpid() == self.pid:
            self.say_not("deepspeed.initialize made no engine with an optimizer or parameters to train")

    def changed(self, initialize, arguments, named):
        """The arguments of initialize with the merged configuration; unchanged for an engine that does not train."""
        given = dict(named)
        try:
            bound = inspect.signature(initialize).bind(*arguments, **named)
            names = [p.name for p in inspect.signature(initialize).parameters.values()
                     if p.kind is p.POSITIONAL_OR_KEYWORD]
        except (TypeError, ValueError):
            raise Doubt("deepspeed.initialize takes other arguments than the script gives")
        given.update((name, bound.arguments[name]) for name in names if name in bound.arguments)
        if arguments and len(arguments) > len(names):
            raise Doubt("another package has replaced deepspeed.initialize by a function without names")
        own = self.configuration(given)
        if given.get(OPTIMIZER) is None and given.get(PARAMETERS) is None and "optimizer" not in own:
            return arguments, named
        if self.given is not None and own != self.given:
            say("dsat: a further engine has another configuration, which it keeps")
            return arguments, named
        with open(self.file) as file:
            trial = json.load(file)
        merged, changes = {}, []
        merge(own, trial, merged, "", changes)
        result = dict(given)
        result.pop(CONFIG_PARAMS, None)
        result[CONFIG] = merged
        if getattr(given.get(ARGUMENTS), "deepspeed_config", None) is not None:
            result[ARGUMENTS] = copy.copy(given[ARGUMENTS])  # the script keeps its own
            result[ARGUMENTS].deepspeed_config = None
        if self.given is None:
            say("dsat: deepspeed.initialize gets dsat's configuration over the script's own: %s"
                % (", ".join(changes) or "nothing differs"))
        self.given = own
        return (), result

    @staticmethod
    def configuration(given):
        own = given.get(CONFIG)
        if own is None:
            own = given.get(CONFIG_PARAMS)
        if own is None:
            own = getattr(given.get(ARGUMENTS), "deepspeed_config", None)
        if own is None:
            raise Doubt("deepspeed.initialize got no configuration")
        if isinstance(own, dict):
            return own
        if not isinstance(own, (str, os.PathLike)) or not os.path.isfile(own):
            raise Doubt("the script's configuration is neither a dict nor a file but %s" % type(own).__name__)
        with open(own) as file:
            reader = sys.modules.get("hjson", json)  # DeepSpeed reads files with it
            return dict(reader.load(file))


def merge(own, over, merged, prefix, changes):
    """Puts `over` over `own` leaf by leaf into `merged`. Neither is changed."""
    for key, value in own.items():
        if isinstance(value, dict):
            merge(value, {}, merged.setdefault(key, {}), "", [])
        else:
            merged[key] = value
    for key, value in over.items():
        if value == "auto":
            continue
        if isinstance(value, dict):
            inner = own.get(key) if isinstance(own.get(key), dict) else {}
            target = {}
            merge(inner, value, target, prefix + key + ".", changes)
            merged[key] = target
            continue
        if own.get(key) != value and not prefix.startswith("autotuning"):
            changes.append("%s%s %s" % (prefix, key, value))
        merged[key] = value
