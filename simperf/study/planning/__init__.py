"""Planning: which machines train a model in time and within a budget, and why the others lose."""

from simperf.study.planning.planner import Candidate, TrainingPlan, plan
from simperf.study.planning.request import Request, load_request, make_request

__all__ = ["Candidate", "Request", "TrainingPlan", "load_request", "make_request", "plan"]
