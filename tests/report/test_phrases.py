"""What limits a run, in the words that a terminal and a page share."""

from simperf import load_scenario, run
from simperf.report.html.limiting import limits
from simperf.report.phrases import limit_words
from simperf.report.tables import format_result


def test_a_terminal_and_a_page_say_the_same():
    result = run(load_scenario("d2l/copy-overlap"))
    words = limit_words(result)
    assert [name for name, _ in words] == ["regime", "busiest", "lower bound", "copy"]
    lines = [" ".join(line.split()) for line in format_result(result).splitlines()]
    assert all(f"{name} {text}" in lines for name, text in words)
    assert limits(result) == [(name.capitalize(), text) for name, text in words]


def test_a_run_at_its_floor_and_one_above_it():
    assert "; the run takes no longer" in dict(limit_words(run(load_scenario("d2l/async"))))["lower bound"]
    assert "; the run takes 2.00x as long" in dict(limit_words(run(load_scenario("d2l/sync-160mb"))))["lower bound"]
    faster = load_scenario("d2l/packets", ["machine.link[0].part=ethernet-100g"])
    assert "% longer" in dict(limit_words(run(faster)))["lower bound"]
