"""Lines about what one machine cannot do as a cluster does: each is said once a process."""
import logging

_said = set()


def say_once(text):
    if text not in _said:
        _said.add(text)
        logging.getLogger("determined").warning("%s", text)
