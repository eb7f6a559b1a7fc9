"""Fits to published tables: constants from some of the points, held against the others."""
