"""A summary of what one run gives: every number of it, and the order of its spans, as plain data for JSON."""

import hashlib
import math
import re
from collections import defaultdict
from fnmatch import fnmatch

from simperf.analysis.breakdown import breakdown
from simperf.run import run_variants
from simperf.scenario import load_scenario, shipped_scenarios
from simperf.scenario.shipped import shipped_folder

#: machines with more resources than this are summed by resources that differ only in their numbers
LISTED = 48


def scenarios(patterns=()):
    """Names of shipped scenarios that fit any of `patterns` (shell patterns); all of them without patterns."""
    known = list(shipped_scenarios())
    found = [name for name in known if not patterns or any(fnmatch(name, pattern) for pattern in patterns)]
    unknown = [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in known)]
    if unknown:
        raise SystemExit(f"no shipped scenario fits {', '.join(unknown)}")
    return found


def summarise_scenario(name):
    """Variant to summary, with spans."""
    return {attempt.name: summarise(attempt) for attempt in run_variants(load_scenario(shipped_scenarios()[name]))}


def summarise(attempt):
    """All numbers of one attempt, or the text of its error; of its spans the count, the order and the breakdown."""
    if attempt.result is None:
        text = f"{type(attempt.error).__name__}: {attempt.error}"
        return {"error": text.replace(str(shipped_folder()), "scenarios")}
    result = attempt.result
    found = {
        "time": result.time,
        "floors": dict(result.floors),
        "metrics": {key: [metric.value, metric.unit, metric.origin] for key, metric in result.metrics.items()},
        "resources": _resources(result),
        "operations": _operations(result),
        "notes": list(result.notes),
        "modelled": list(result.modelled),
        "not modelled": list(result.not_modelled),
        "sources": dict(result.sources),
    }
    if result.spans:
        found["spans"] = {"count": len(result.spans), "order": _order(result.spans), "arrows": len(result.arrows)}
        found["breakdown"] = {key: value for key, value in breakdown(result).items() if value}
    return found


def _resources(result):
    """Kind, capacity and work of each resource; of many the count, the sum, the least and the most of those alike."""
    if len(result.resources) <= LISTED:
        return {key: [use.kind, _finite(use.capacity), use.work] for key, use in result.resources.items()}
    alike = defaultdict(list)
    for key, use in result.resources.items():
        alike[re.sub(r"\d+", "#", key), use.kind, use.capacity].append(use.work)
    found = {}
    for (key, kind, capacity), works in alike.items():
        label = key if key not in found else f"{key} of {capacity:.6g}"
        found[label] = [kind, _finite(capacity), len(works), math.fsum(works), min(works), max(works)]
    return found


def _operations(result):
    """Count, calls, totals, and which operations in which regime on which device."""
    used = result.operations
    if not used:
        return {}
    order = _digest("\n".join(f"{use.name}|{use.device}|{use.dtype}|{use.calls}|{use.regime}" for use in used))
    totals = {what: math.fsum(use.calls * getattr(use, what) for use in used) for what in ("flops", "nbytes", "time")}
    return {"count": len(used), "calls": sum(use.calls for use in used), "which": order, **totals}


def _order(spans):
    """Digest of the names and categories of each resource's spans, in their order."""
    tracks = defaultdict(list)
    for span in spans:
        tracks[span.track].append(f"{span.name}|{span.category}")
    return _digest("\n".join(f"{track}\n" + "\n".join(tracks[track]) for track in sorted(tracks)))


def _digest(text):
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _finite(value):
    """A number that JSON knows, or the name of one that it does not."""
    return value if math.isfinite(value) else str(value)
