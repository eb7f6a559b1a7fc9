"""Search of layouts: which division of a large model among a machine's GPUs trains it fastest, and why."""

from simperf.study.layouts.plan import LayoutPlan, plan_layouts
from simperf.study.layouts.ranked_layout import RankedLayout
from simperf.study.layouts.request import LayoutRequest, load_layouts, make_layouts

__all__ = ["LayoutPlan", "LayoutRequest", "RankedLayout", "load_layouts", "make_layouts", "plan_layouts"]
