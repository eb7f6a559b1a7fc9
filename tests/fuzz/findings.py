"""What must never come of a case: tracebacks, no end, numbers that cannot be, messages that name no place."""

import json
import re
import signal

__all__ = ["finding"]

_PLACE = re.compile(r"--?[a-z]|[A-Z]{3,}|\b[a-z_]+(\[\d+\]|\.[a-z_\"])")
#: units of what is never negative
_UNITS = {"s", "B", "B/s", "FLOP", "FLOP/s", "1/s", "W", "USD", "samples/s"}


def finding(outcome, case):
    """What is wrong with the outcome of a case, and the words that show it; two empty texts if nothing is."""
    err = outcome.err
    if outcome.code in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        return "no end", f"{outcome.seconds:.0f} s"
    if "MemoryError" in err or "not enough memory" in err:
        return "memory", _line(err, "emory")
    if "This is a defect of simperf" in err:
        return "caught traceback", err.strip().splitlines()[0][:300]
    if "Traceback (most recent call last)" in err:
        return "traceback", err.strip().splitlines()[-1][:300]
    if outcome.code not in (0, 1, 2, 130):
        return "exit code", f"{outcome.code}: {err[-200:]}"
    if outcome.code == 2:
        return _unplaced(err, case)
    return _odd_number(outcome.out)


def _line(text, word):
    return next((line for line in text.splitlines() if word in line), "")[:300]


def _unplaced(err, case):
    """An error that says neither file nor option nor key."""
    blocks = [block for block in re.split(r"^(?=error: )", err, flags=re.M) if block.startswith("error: ")]
    if not blocks and err.strip():
        return ("", "") if "Usage:" in err or "No such" in err else ("no message", err[:300])
    if not blocks:
        return "no message", "exit code 2 and no error"
    names = [word for word in (*case.names, *case.words) if len(word) > 2] + [repr(word) for word in case.words if word]
    for block in blocks:
        told = any(name in block for name in names) or any(block.startswith(f"error: {word}: ") for word in case.words)
        if not told and not _PLACE.search(block.partition("error: ")[2]):
            return "no place", block[:300]
    return "", ""


def _odd_number(out):
    """A number in a result that is none, or negative where it cannot be."""
    text = out.strip()
    if text.startswith("{"):
        try:
            data = json.loads(text, parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))
        except ValueError as error:
            return "number", f"JSON with {error}"[:300]
        return next(((("number", told)) for told in _negative(data, ())), ("", ""))
    found = re.search(r"(?<![\w./-])-?nan(?![\w./-])", text)
    return ("number", text[max(0, found.start() - 100) : found.end() + 100]) if found else ("", "")


def _negative(data, path):
    if isinstance(data, dict):
        value = data.get("value", data.get("time"))
        if isinstance(value, int | float) and value < 0 and (data.get("unit") in _UNITS or "time" in data):
            yield f"{'.'.join(map(str, path))}: {value} {data.get('unit', '')}"
    for key, each in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _negative(each, (*path, key))
