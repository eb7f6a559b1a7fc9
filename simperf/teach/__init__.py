"""Lessons: their texts in two languages, and exercises whose answers the simulator knows."""

from simperf.teach.exercise import Exercise, Feedback
from simperf.teach.lesson import Lesson, find_lesson, lessons

__all__ = ["Exercise", "Feedback", "Lesson", "find_lesson", "lessons"]
