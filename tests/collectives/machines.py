"""Regular machines of equal links, and plans whose sends follow one another."""

from dataclasses import replace

from simperf.collectives import Phase
from simperf.hardware import build_topology


def star(n=8, **options):
    return build_topology("star", n, bandwidth=50e9, latency=250e-9, **options)


def ring(n):
    return build_topology("ring", n, bandwidth=50e9, latency=500e-9)


def pipelined(plan):
    """The same rings with sends that do not wait for each other: what a channel is the flow of."""

    def piped(channel):
        rounds = [phase.make(index) for phase in channel.phases for index in range(phase.nrounds)]
        return replace(channel, phases=(Phase(len(rounds), rounds.__getitem__, "pipeline"),))

    return replace(plan, channels=tuple(piped(channel) for channel in plan.channels))
