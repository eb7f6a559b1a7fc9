"""Regular machines of equal links."""

from simperf.hardware import build_topology


def star(n=8, **options):
    return build_topology("star", n, bandwidth=50e9, latency=250e-9, **options)


def ring(n):
    return build_topology("ring", n, bandwidth=50e9, latency=500e-9)
