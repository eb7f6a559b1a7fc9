"""Variants that are compared: errors of one end none of the others, and what is passed on is run."""

from simperf import load_scenario
from simperf.errors import SimperfError
from simperf.study.compare import compare, run_variants


def test_an_error_of_one_ends_none_of_the_others():
    variants = load_scenario("d2l/sync-160mb").variants or (load_scenario("d2l/async"),)
    asked = []

    def play(scenario, **options):
        asked.append(scenario.name)
        if len(asked) == 1:
            raise SimperfError("out of memory")
        from simperf.run import run

        return run(scenario, **options)

    found = run_variants([*variants, *variants], play=play, progress=list)
    assert asked == [one.name for one in (*variants, *variants)]
    assert str(found[0].error) == "out of memory"
    assert found[0].result is None
    assert all(one.error is None and one.result is not None for one in found[1:])


def test_it_is_what_a_comparison_runs():
    scenario = load_scenario("d2l/sync-160mb")
    chosen = scenario.variants or (scenario,)
    side = compare(scenario)
    assert [one.result.time for one in side.attempts] == [one.result.time for one in run_variants(chosen)]
