"""Large models: a step of GPT-3 175B on 1,024 GPUs, beside plain work of the same size.

pytest tests/benchmarks/test_large_models.py --benchmark-enable --benchmark-columns=median
"""

import simpy

from simperf import run
from simperf.scenario import load_scenario

#: events of two steps of the run below
EVENTS = 65_000


def test_as_many_events_of_simpy(benchmark):
    """The baseline: what the clock alone needs for as many events."""

    def play():
        env = simpy.Environment()

        def program():
            for _ in range(EVENTS):
                yield env.timeout(1.0)

        env.process(program())
        env.run()
        return env.now

    assert benchmark.pedantic(play, rounds=1, iterations=1) == EVENTS


def test_gpt3_175b_on_1024_gpus(benchmark):
    """Interleaved 1F1B with 64 micro-batches, the machine and its classes of ranks included."""

    def play():
        scenario = load_scenario("large/gpt3-175b-1024-a100", ["program.batch=1024", "program.steps=2"])
        return run(scenario, record=False)

    result = benchmark.pedantic(play, rounds=1, iterations=1)
    assert result.metrics["GPUs"].value == 1024
