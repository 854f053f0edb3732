"""Warnings about differences between one machine and a cluster, each logged once a process."""
import logging

_logged = set()


def say_once(text):
    if text not in _logged:
        _logged.add(text)
        logging.getLogger("determined").warning("%s", text)
