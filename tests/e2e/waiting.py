"""Waits for what a test needs, and says what did not come."""
import time


def wait_until(check, what, seconds=60):
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            raise RuntimeError(f"waited in vain: {what}")
        time.sleep(0.05)
