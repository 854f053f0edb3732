"""The exceptions of Determined that a script may catch or raise."""


class InvalidHP(Exception):
    """Raised by a script: these hyperparameters cannot train. The trial ends without its failure being the script's."""


class InvalidExperimentException(Exception):
    """A trial class or an experiment that cannot run."""


class InternalException(Exception):
    """A method was called at a time when it has no answer."""


class InvalidConfigurationException(InvalidExperimentException):
    """The experiment file says what cannot be."""
