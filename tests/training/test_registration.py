"""What passes before the first step, and runs of more steps than are simulated."""

import pytest

from simperf.errors import InputError
from simperf.hardware import build_cluster
from simperf.training.servers.registration import announce

S = 104857600.0
LATENCY = 0.5e-6  # of the way over the star's hub


def before(session):
    return session.metrics["time before the first step"][0]


def test_one_key_and_one_server_that_four_workers_share(star, with_servers):
    """The port takes in four gradients, then eight (gradients and the broadcast's), and gives four out."""
    session = with_servers(star(4), steps=1, weights=S, opening=True)
    assert before(session) == pytest.approx(16 * S / 50e9 + 3 * LATENCY, rel=1e-9)
    assert session.metrics["bytes carried"][0] == pytest.approx((16 + 8) * S)


def test_slices_come_one_after_the_other_so_that_one_port_works_at_a_time(catalog, with_servers):
    """Four machines with a server each: three times the gradient through one port, twice; in a step 3/4 each way."""
    machine = build_cluster("p3-16xlarge", 4, catalog=catalog, link="ethernet-25g")
    plan = {"steps": 1, "layers": 64, "weights": S, "servers": 4, "reduction": "ring", "connections": 1}
    rate = machine.route("n0/cpu0", "n1/cpu0").bandwidth
    session = with_servers(machine, opening=True, **plan)
    assert 6 * S / rate < before(session) < 9 * S / rate, "at most a push and a pull more, for the broadcast"
    assert session.metrics["time per step"][0] > before(session), "the only step is reported with what came before"
    assert announce.__doc__


def test_steps_after_the_opening_are_as_without_it(star, with_servers):
    plan = {"steps": 4, "layers": 4, "backward": 5e-3, "weights": S}
    with_it, without = (with_servers(star(4), opening=opening, **plan) for opening in (True, False))
    assert with_it.now == pytest.approx(without.now + before(with_it), rel=1e-9)
    steps = [session.metrics["time per step"][0] for session in (with_it, without)]
    assert steps[0] == pytest.approx(steps[1], rel=1e-9)
    assert "time before the first step" not in without.metrics


def test_a_run_is_continued_at_the_mean_of_its_steps(star, with_servers):
    plan = {"layers": 4, "backward": 5e-3, "weights": S, "opening": True}
    whole = with_servers(star(4), steps=40, total=40, **plan)
    part = with_servers(star(4), steps=4, total=40, **plan)
    assert whole.metrics["run time"][0] == pytest.approx(whole.now, rel=1e-9)
    assert part.metrics["run time"][0] == pytest.approx(whole.now, rel=1e-6)
    assert part.now < whole.now / 5
    assert any("mean of the others but the first" in note for note in part.notes)


def test_a_whole_run_has_no_fewer_steps_than_its_part(star, with_servers):
    with pytest.raises(InputError, match="more than the whole run has"):
        with_servers(star(2), steps=4, total=3, weights=S)


def test_one_machine_for_all_takes_as_long_as_all(catalog, with_servers):
    machine = build_cluster("p3-16xlarge", 6, catalog=catalog, link="ethernet-25g")
    plan = {"steps": 1, "layers": 4, "weights": S, "servers": 2, "where": "dedicated", "reduction": "ring"}
    one = with_servers(machine, opening=True, connections=1, **plan)
    every = with_servers(machine, opening=True, connections=1, stragglers=1, **plan)
    assert any("one is simulated for all" in note for note in one.notes)
    assert not any("one is simulated for all" in note for note in every.notes)
    assert before(one) == pytest.approx(before(every), rel=1e-9)
    assert one.metrics["bytes carried"][0] == pytest.approx(every.metrics["bytes carried"][0])
