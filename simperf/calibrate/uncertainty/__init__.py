"""Uncertainty of what is fitted and predicted from measurements.

- `bootstrap`: joint samples of fitted constants.
- `likelihood`: ends of intervals where a model is not linear.
- `constants`: the interval, the draws and the doubts of each constant of a fit.
- `variance`: what errors of a session, or of a GPU, share, and what is each point's own.
- `soft_l1`: the loss, which `bootstrap` and `likelihood` take the derivatives of.
"""
