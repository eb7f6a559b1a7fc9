"""Lessons: their texts in two languages, and exercises whose answers the simulator knows."""

from simperf.teach.exercise import Exercise, Verdict
from simperf.teach.lesson import Lesson, find_lesson, lessons

__all__ = ["Exercise", "Lesson", "Verdict", "find_lesson", "lessons"]
