"""The scenario that simulates a recorded training step again, on the GPU of its recording or on other hardware."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem
from simperf.hardware import Catalog

__all__ = ["replay_scenario"]


def replay_scenario(
    files: Sequence[str | os.PathLike[str]], on: str = "", options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The tables of a scenario that simulates traces.

    Parameters
    ----------
    files : sequence of path
        What torch's profiler wrote, one a rank.
    on : str
        A GPU, a server or a cluster of the catalogue; empty for as recorded.
    options : mapping, optional
        Of the program ``recorded-step``.

    Raises
    ------
    InputError
        ``collectives`` are given where there is no network that they could take.
    """
    gpu = on in Catalog.load().names("gpu")
    given = dict(options or {})
    if given.get("collectives") and (not on or gpu):
        message = f"has no effect: {'a GPU' if on else 'without --on a step'} has no network of its own"
        expected = "--on NAME of a server or a cluster too"
        raise InputError(Problem(message, key="collectives", value=given["collectives"], expected=expected))
    paths = [Path(one) for one in files]
    program = {"use": "recorded-step", "trace": [str(one.absolute()) for one in paths], **given}
    title = f"{paths[0].name} on {on}" if on else paths[0].name
    scenario: dict[str, Any] = {
        "scenario": {"title": title, "answer": {"metric": "time per step"}},
        "program": program,
    }
    if gpu:
        gpus = f"gpu{{0..{len(paths) - 1}}}" if len(paths) > 1 else "gpu0"
        scenario["machine"] = {
            "node": [{"id": gpus, "gpu": on}, {"id": "cpu0", "cpu": "xeon-8168"}],
            "link": [{"a": gpus, "b": "cpu0", "part": "pcie3-x16"}],
        }
        if len(paths) > 1:
            program["collectives"] = "recorded"  # no network is named
    elif on:
        scenario["machine"] = {"use": on}
    return scenario
