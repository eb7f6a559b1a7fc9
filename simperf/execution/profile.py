"""What the frontend of a framework costs: its part of the catalogue."""

from __future__ import annotations

from simperf.hardware import FrontendPart

__all__ = ["FREE", "FrontendPart"]

#: A frontend that costs nothing: times come from the kernels' own t1, t2, t3.
FREE = FrontendPart(name="free", title="A frontend that costs nothing", sources={"default": "by definition"})
