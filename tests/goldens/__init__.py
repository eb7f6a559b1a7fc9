"""Regression fixtures of every shipped scenario: what it gives, and each change of it with the reason."""
