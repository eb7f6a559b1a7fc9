"""Strategies of training: who computes what, and how gradients and weights travel."""
