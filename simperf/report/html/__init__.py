"""One-file reports: a page that needs no network, for a screen, a phone and paper."""

from simperf.report.html.comparison import comparison_report
from simperf.report.html.contributions import difference_report, sensitivity_report, what_if_report
from simperf.report.html.layouts import layouts_report
from simperf.report.html.limits import limits_report
from simperf.report.html.page import PageSection, page, save_page
from simperf.report.html.plan import plan_report
from simperf.report.html.result import machine_of, result_report
from simperf.report.html.studies import collective_report, sweep_report

__all__ = [
    "PageSection",
    "collective_report",
    "comparison_report",
    "difference_report",
    "layouts_report",
    "limits_report",
    "machine_of",
    "page",
    "plan_report",
    "result_report",
    "save_page",
    "sensitivity_report",
    "sweep_report",
    "what_if_report",
]
