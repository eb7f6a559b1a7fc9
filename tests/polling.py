"""A condition that is asked for again and again until it holds."""

import time


def wait_until(condition, what, *, within=60.0):
    """Wait until the condition holds, and give its value."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(what)
