"""Raw SimPy timeouts of one process: the baseline of the engine's speed."""

import simpy


def raw_timeouts(count):
    """The time on the clock after `count` timeouts of 1 s, one after the other."""
    env = simpy.Environment()

    def process():
        for _ in range(count):
            yield env.timeout(1.0)

    env.process(process())
    env.run()
    return env.now
