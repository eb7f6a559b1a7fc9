"""Times of single operations, alone: roofline, fitted constants, tiles. Pure functions of sizes."""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.cost.collectives import MeasuredCollective, MeasuredCollectives
    from simperf.cost.fitted import FittedRoofline
    from simperf.cost.formulas import MatrixConstants, matrix_time, row_time, stream_time
    from simperf.cost.roofline import SHARPNESS, Roofline
    from simperf.cost.roofline_draws import Miss, Unseen, UnseenRoofline, sort_of
    from simperf.cost.rows import RowLaunch, pressure, row_launch
    from simperf.cost.seams import GpuRates, OpCost, OpModel
    from simperf.cost.settings import CostSettings, ProcessorCalls
    from simperf.cost.tiles import Tiling, tiling
else:
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "collectives": ("MeasuredCollective", "MeasuredCollectives"),
            "fitted": ("FittedRoofline",),
            "formulas": ("MatrixConstants", "matrix_time", "row_time", "stream_time"),
            "roofline": ("SHARPNESS", "Roofline"),
            "rows": ("RowLaunch", "pressure", "row_launch"),
            "seams": ("GpuRates", "OpCost", "OpModel"),
            "settings": ("CostSettings", "ProcessorCalls"),
            "tiles": ("Tiling", "tiling"),
            "roofline_draws": ("Miss", "Unseen", "UnseenRoofline", "sort_of"),
        },
    )

__all__ = [
    "SHARPNESS",
    "CostSettings",
    "FittedRoofline",
    "GpuRates",
    "MatrixConstants",
    "MeasuredCollective",
    "MeasuredCollectives",
    "Miss",
    "OpCost",
    "OpModel",
    "ProcessorCalls",
    "Roofline",
    "RowLaunch",
    "Tiling",
    "Unseen",
    "UnseenRoofline",
    "matrix_time",
    "pressure",
    "row_launch",
    "row_time",
    "sort_of",
    "stream_time",
    "tiling",
]
