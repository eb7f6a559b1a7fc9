"""Markdown tables of all changes since the first fixtures."""

from collections import defaultdict

#: characters of a text that a cell shows
SHOWN = 60


def table(fixtures):
    """Lines of one table with a row for each change."""
    yield "| scenario | variant | what | before | after | change | why |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, fixture in fixtures:
        for change in fixture["changes"]:
            cells = [name, *_cells(change), change["why"]]
            yield "| " + " | ".join(_text(cell) for cell in cells) + " |"


def summary(fixtures):
    """Lines of one table with a row for each reason and scenario: how many values changed, and the largest change.

    The time comes first, then metrics, then the rest: the largest change is that of the first of these that changed.
    """
    groups = defaultdict(list)
    for name, fixture in fixtures:
        for change in fixture["changes"]:
            groups[change["why"], name].append(change)
    yield "| why | scenario | changed values | variant | what | before | after | change |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    last = None
    for (why, name), changes in sorted(groups.items()):
        largest = min(changes, key=_rank)
        cells = [why if why != last else "", name, str(len(changes)), *_cells(largest)]
        last = why
        yield "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _rank(change):
    """Time before metrics before the rest; the largest relative change first."""
    key = change["metric"]
    group = 0 if key in ("time", "variant", "error") else 1 if key.startswith("metrics.") else 2
    return group, -abs(_relative(change) or 0.0), key


def _number(value):
    """The number of a plain value or of a metric, None for others."""
    if isinstance(value, list) and len(value) == 3 and isinstance(value[0], int | float):
        value = value[0]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _relative(change):
    before, after = _number(change["before"]), _number(change["after"])
    return None if not before or after is None else after / before - 1


def _cells(change):
    before, after, relative = change["before"], change["after"], _relative(change)
    if isinstance(before, list) and isinstance(after, list) and _number(before) is None:
        before, after = ([one for one in a if one not in b] for a, b in ((before, after), (after, before)))
    share = "" if relative is None else f"{relative:+.3%}"
    return [change["variant"], change["metric"], _shown(before), _shown(after), share]


def _shown(value):
    if value is None:
        return "-"
    number = _number(value)
    if number is not None:
        unit = value[1] if isinstance(value, list) else ""
        return f"{number:.7g} {unit}".strip()
    if isinstance(value, list):
        return "; ".join(_shown(one) for one in value)
    return str(value)


def _text(cell):
    text = " ".join(str(cell).split()).replace("|", "/")
    return text if len(text) <= 3 * SHOWN else text[: 3 * SHOWN - 3] + "..."
