"""The exceptions of Determined that a script may catch or raise."""


class InvalidHP(Exception):
    """A script raises it for hyperparameters that cannot train. The failure then does not count as the script's."""


class InvalidExperimentException(Exception):
    """An invalid trial class or experiment."""


class InternalException(Exception):
    """A method was called at the wrong time."""


class InvalidConfigurationException(InvalidExperimentException):
    """An invalid experiment file."""
