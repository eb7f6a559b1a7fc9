"""Fixture files, one a scenario: the summary as it is now, and the list of changes since the first one."""

import json
import re
import sys
from pathlib import Path

from simperf.files import write_bytes

FOLDER = Path(__file__).parent / "fixtures"
#: whether this Python rounds sums as the one that made the fixtures: from 3.12 on, `sum` of floats is compensated
ALIKE = sys.version_info[:2] == (3, 11)
#: relative tolerance of numbers that are not whole
RTOL = 1e-12 if ALIKE else 5e-12
#: what depends on which of two operations comes first that end within rounding
ORDERS = () if ALIKE else ("operations.which",)
#: what stands for zero: the rounding of a difference of two equal times
ATOL = 1e-15
#: metrics that are what is left of the whole time: their rounding is that of the time
DIFFERENCES = (": idle", ".exposed communication")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def fixture_path(name):
    """The file of a scenario."""
    return FOLDER / f"{name}.json"


def read_fixture(name):
    """Fixture of a scenario; None if it has none."""
    path = fixture_path(name)
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def write_fixture(name, variants, changes):
    """Write a scenario's fixture: one line a group of numbers and a change, so that files merge by line."""
    lines = ["{", f' "scenario": {_dump(name)},', ' "variants": {']
    for last, (variant, summary) in _marked(variants.items()):
        lines.append(f"  {_dump(variant)}: {{")
        lines += [f"   {_dump(key)}: {_dump(value)}{_comma(end)}" for end, (key, value) in _marked(summary.items())]
        lines.append(f"  }}{_comma(last)}")
    lines += [" },", ' "changes": [']
    lines += [f"  {_dump(change)}{_comma(last)}" for last, change in _marked(changes)]
    lines += [" ]", "}"]
    path = fixture_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, ("\n".join(lines) + "\n").encode())


def _marked(items):
    items = list(items)
    return [(number == len(items), item) for number, item in enumerate(items, 1)]


def _comma(last):
    return "" if last else ","


def _dump(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def differences(before, now, *, spans=True):
    """What differs between two mappings of variants to summaries: rows (variant, what, before, now).

    Without `spans`, what only a recorded run knows is left out. What is missing on one side is None there.
    """
    rows = []
    for variant in {**before, **now}:
        old, new = ({} if side.get(variant) is None else side[variant] for side in (before, now))
        if not spans:
            old, new = ({k: v for k, v in side.items() if k not in ("spans", "breakdown")} for side in (old, new))
        if not old or not new:
            rows.append((variant, "variant", *(_there(side) for side in (old, new))))
            continue
        old, new = dict(_flat(old)), dict(_flat(new))
        for key in {**old, **new}:
            least = RTOL * now[variant].get("time", 0.0) if key.endswith(DIFFERENCES) else ATOL
            if key not in ORDERS and not equal(old.get(key), new.get(key), least):
                rows.append((variant, key, old.get(key), new.get(key)))
    return rows


def _there(summary):
    return summary.get("error") or summary.get("time")


def _flat(summary):
    """Dotted names to values; a list of numbers stays whole."""
    for key, value in summary.items():
        if isinstance(value, dict):
            for name, inner in value.items():
                yield f"{key}.{name}", inner
        else:
            yield key, value


def equal(a, b, least=ATOL):
    """Equal within the tolerance for floats, `least` at any rate; exactly for all else."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y, least) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        if not (isinstance(a, int | float) and isinstance(b, int | float)):
            return False
        return abs(a - b) <= max(RTOL * max(abs(a), abs(b)), least)
    return a == b or (not ALIKE and isinstance(a, str) and isinstance(b, str) and rounded_apart(a, b))


def rounded_apart(a, b):
    """Whether texts differ in the last digit of a number with decimals at most, as what lies between two does."""
    found = list(zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=False))
    return _NUMBER.sub("#", a) == _NUMBER.sub("#", b) and all(
        x == y or ("." in x and len(x) == len(y) and abs(int(x.replace(".", "")) - int(y.replace(".", ""))) == 1)
        for x, y in found
    )


def changed(changes, rows, why):
    """The list of changes with new rows: the first `before` stays, reasons add up, what is as it was is dropped."""
    found = {(change["variant"], change["metric"]): change for change in changes}
    for variant, metric, before, after in rows:
        old = found.get((variant, metric))
        first = old["before"] if old else before
        reasons = [old["why"]] if old and why not in old["why"] else []
        reason = "; then ".join([*reasons, why]) if reasons or not old else old["why"]
        found[variant, metric] = {
            "variant": variant,
            "metric": metric,
            "before": first,
            "after": after,
            "why": reason,
        }
        if equal(first, after):
            del found[variant, metric]
    return list(found.values())
