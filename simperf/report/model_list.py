"""The list of models that come with simperf: traced ones, and transformers by their dimensions."""

from __future__ import annotations

from typing import Any

from simperf.report.rows import rows_text
from simperf.workload import zoo
from simperf.workload.transformers.flops import forward_flops
from simperf.workload.transformers.shipped import shipped_transformers

__all__ = ["model_list"]


def model_list(output: str) -> str:
    """Parameters, work of the forward pass for one sample, and title of each model.

    Parameters
    ----------
    output : str
        ``"table"``, ``"csv"`` or ``"json"``; a table has the transformers by themselves, with what a token meets.
    """
    traced: list[dict[str, Any]] = []
    for name in zoo.names():
        model = zoo.load(name)
        numbers = {"parameters": model.parameter_count, "macs": model.macs()}
        traced.append({"name": name, **numbers, "optimizer": model.optimizer.name, "title": model.title})
    transformers = shipped_transformers()
    macs = {name: forward_flops(one, causal=True) / 2 for name, one in transformers.items()}
    if output != "table":
        rows = [
            {"name": name, "parameters": one.parameters, "macs": macs[name], "optimizer": "", "title": one.title}
            for name, one in transformers.items()
            if name not in zoo.names()  # a row a name
        ]
        return rows_text([*traced, *rows], output)
    shown = [{**row, "parameters": f"{row['parameters']:,}", "macs": f"{row['macs'] / 1e9:,.4f} G"} for row in traced]
    by_dimensions = [
        {
            "name": name,
            "parameters": f"{one.parameters / 1e9:,.2f} B",
            "a token meets": f"{one.active_parameters / 1e9:,.2f} B",
            "macs": f"{macs[name] / 1e12:,.2f} T",
            "tokens": f"{one.sequence:,}",
            "title": one.title,
        }
        for name, one in transformers.items()
    ]
    return rows_text(shown, output) + "\n\ntransformers by their dimensions\n" + rows_text(by_dimensions, output)
