"""Numbers that no answer may hold: none at all, without an end, or below 0 where they cannot be."""

import csv
import json
import math
import re

__all__ = ["odd_csv", "odd_json", "odd_text", "odd_tree"]

#: keys whose numbers may be negative: changes, relative errors, seeds, and names of streams
SIGNED = {
    "change",
    "error",
    "difference",
    "interaction",
    "seed",
    "stream",
    "slope",
    "correlation",
    "deviation",
    "time_difference",
    "process_sort_index",
}
#: keys under which stands what was given, not what was found
GIVEN = {"scenario", "set", "data", "changes", "checks"}
#: of a number beside its bounds, and of a time beside its floors [1]
TOLERANCE = 1e-9
#: columns of a table as CSV that hold texts, and those that hold what was found
_TEXTS = {"answer.metric", "answer.better", "lower_bound_name"}
_FOUND = re.compile(r"^(time|ratio|regime_share|utilisation|floor|lower_bound|rank|breakdown\.|metrics\.|answer)")
_UNIT = (
    r"(?:[kMGTPEmunµ]?(?:i?B|bit|b|FLOP|FLOPS|s|W|Wh|Hz)(?:/s|/h)?|[kMGT]?/s|USD(?:/h)?|min|h|d|days?|ranks?|steps?|samples?"
    r"(?:/s)?)(?![\w/])"
)
_NO_NUMBER = re.compile(rf"(?<![\w.,/(-])-?(?:nan|NaN|inf|Infinity(?! Fabric)|-inf)(?:\s?{_UNIT}|(?![\w.,/(-]))")
#: bounds that a file's [expect] gives
_WANTED = re.compile(r"(?<=, expected )-[^(\n]*")
#: what was given, between quotes, which lines may break
_QUOTED = re.compile(r"(?<!\w)(['\"])(?:(?!\1).){1,200}?\1(?!\w)", re.S)
#: "-45 ms  of communication" is a difference
_NEGATIVE = re.compile(rf"(?<![\w.,:=/+(-])-\d[\d.,]*(?:e[+-]?\d+)?\s?{_UNIT}(?! +of )")
#: what changed on a critical path: "nvlink=2x: communication -231.2 us, overhead +2 us", or "together: ..."
_MOVED = re.compile(rf"(?:(?<==)[^\s:=]+|\btogether): [a-z ]+ [+-][\d.]+ {_UNIT}(?:, [a-z ]+ [+-][\d.]+ {_UNIT})?")
#: rows of sizes: size [B], time [us], two bandwidths
_SIZES = re.compile(r"^ +\d+ +(\S+) +(\S+) +(\S+)", re.M)


def odd_json(text):
    """What is odd in JSON: it cannot be read, it holds NaN or infinity, or a number that cannot be; or nothing."""

    def refuse(word):
        raise ValueError(word)

    try:
        return odd_tree(json.loads(text, parse_constant=refuse))
    except (ValueError, RecursionError) as error:
        return f"JSON with {error}"[:300]


def odd_tree(data, path=()):
    """The first number in tables and lists that cannot be, with its place; an empty text if there is none."""
    if isinstance(data, dict):
        return _odd_table(data, path)
    if isinstance(data, list):
        return next((told for at, each in enumerate(data) if (told := odd_tree(each, (*path, f"[{at}]")))), "")
    if isinstance(data, float) and not math.isfinite(data):
        return f"{_place(path)}: {data}"
    if isinstance(data, int | float) and not isinstance(data, bool) and data < 0:
        return f"{_place(path)}: {data}"
    return ""


def _odd_table(data, path):
    if told := _contradiction(data):
        return f"{_place(path)}: {told}"
    for key, each in data.items():
        signed = key in SIGNED or ("." in key and not _FOUND.search(key))  # with a dot: a key that a sweep sets
        if key in GIVEN or (signed and _is_number(each) and math.isfinite(each)):
            continue
        if told := odd_tree(each, (*path, key)):
            return told
    return ""


def _contradiction(data):
    """Numbers of a table that cannot all be right: an interval, a time and its floors, begin and end of a span."""
    low, high = data.get("low"), data.get("high")
    if _is_number(low) and _is_number(high) and low > high:
        return f"an interval from {low} to {high}"
    floors = data.get("floors", data.get("floor", data.get("lower_bound")))
    if isinstance(floors, dict):
        floors = [floors.get("time")] if "ratio" in floors else list(floors.values())
    lower = list(filter(_is_number, floors if isinstance(floors, list) else [floors]))
    if _is_number(data.get("time")) and lower and max(lower) > data["time"] * (1 + TOLERANCE):
        return f"a time of {data['time']} below its lower bound of {max(lower)}"
    for at, span in enumerate(data.get("spans") or () if "metrics" in data else ()):
        if isinstance(span, list) and len(span) > 3 and span[2] > span[3]:
            return f"spans[{at}]: from {span[2]} to {span[3]}"
    return ""


def odd_text(text, echoes=()):
    """A number in the words of an answer that cannot be, with what stands around it.

    Parameters
    ----------
    text : str
    echoes : iterable of str
        Titles and names that were given, which may be spelt as numbers are.
    """
    for echo in sorted(filter(None, echoes), key=len, reverse=True):
        text = text.replace(echo, " ")
    text = _QUOTED.sub(" ", _MOVED.sub(" ", _WANTED.sub(" ", text)))
    found = _NO_NUMBER.search(text) or _NEGATIVE.search(text)
    if found:
        return text[max(0, found.start() - 100) : found.end() + 100]
    if text.startswith("# simperf collective"):
        for row in _SIZES.finditer(text):
            if not all(cell.endswith("%") or _is_right(cell) for cell in row.groups()):
                return row.group()
    return ""


def odd_csv(text):
    """A cell of a table as CSV that cannot be, with the name of its column; texts are not looked at."""
    csv.field_size_limit(max(len(text), csv.field_size_limit()))  # a name in a file may be long
    rows = list(csv.reader(text.splitlines()))
    head, found = rows[0] if rows else [], ""
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(head):
            return f"row {number} has {len(row)} cells, the head {len(head)}"
        for name, cell in zip(head, row, strict=True):
            unit = name.rpartition("[")[2] if name.endswith("]") else ""
            if name.partition(" [")[0] in SIGNED and _is_right(cell.removeprefix("-")):
                continue
            if cell and name not in _TEXTS and (_FOUND.search(name) or unit) and not _is_right(cell):
                found = found or f"row {number}, {name}: {cell}"
    return found


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_right(cell):
    """Whether a cell is a number that may be."""
    try:
        return 0.0 <= float(cell) < math.inf
    except ValueError:
        return False


def _place(path):
    return ".".join(map(str, path)).replace(".[", "[")
