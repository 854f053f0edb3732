"""Lines about what one machine cannot do as a cluster does: each is logged once a process."""
import logging

_logged = set()


def say_once(text):
    if text not in _logged:
        _logged.add(text)
        logging.getLogger("determined").warning("%s", text)
