"""Mutated files and options, run under limits of time and memory, and held to what must never happen."""
