"""Fits to published tables: constants from some of the points, compared with the others."""
