"""Accuracy: every comparison of predictions with published measurements, and what is fitted to them."""
