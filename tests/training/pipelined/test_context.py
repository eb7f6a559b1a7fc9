"""Jobs whose ranks share sequences: every rank played takes as long, and what is exposed is told."""

from functools import partial

import pytest

from simperf.errors import InputError
from simperf.workload.transformers import Transformer
from tests.training.pipelined.small import step_time, train

LLAMA = Transformer(layers=4, hidden=512, heads=8, ffn=1024, vocabulary=1024, sequence=8192)
MIXTURE = Transformer(
    layers=4, hidden=512, heads=8, vocabulary=1024, sequence=8192, experts=4, experts_per_token=2, expert_ffn=512
)


run = partial(train, model=LLAMA)


@pytest.mark.parametrize("exchange", ["ring", "all-gather", "all-to-all"])
@pytest.mark.parametrize(
    ("layout", "model"),
    [
        ({"cp": 4}, LLAMA),
        ({"cp": 2, "tp": 2, "pp": 2}, LLAMA),
        ({"cp": 2, "dp": 2, "pp": 2, "sharding": "zero-1"}, LLAMA),
        ({"cp": 2, "dp": 2, "ep": 4}, MIXTURE),
    ],
)
def test_every_rank_played_takes_as_long(layout, model, exchange):
    few, every = (
        run(layout, model=model, context_exchange=exchange, set=set) for set in ({}, {"program.exact": "yes"})
    )
    assert step_time(few) == pytest.approx(step_time(every), rel=1e-9)
    metrics = few.metrics
    assert metrics["stage 0: exposed context"].value >= 0.0
    assert metrics["stage 0: exposed context"].value + metrics["stage 0: hidden context"].value > 0.0


@pytest.mark.parametrize("exchange", ["ring", "all-gather", "all-to-all"])
def test_packed_documents_take_less_time_and_every_rank_played_as_long(exchange):
    packed = {"program.document_tokens": 1024}
    few, every, whole = (
        run({"cp": 4, "dp": 2}, context_exchange=exchange, set=set)
        for set in (packed, {**packed, "program.exact": "yes"}, {})
    )
    assert step_time(few) == pytest.approx(step_time(every), rel=1e-9)
    assert step_time(few) < step_time(whole)


def test_gradients_are_added_up_over_all_that_share_sequences():
    shared, alone = run({"cp": 4}, batch=4), run({"dp": 4}, batch=4)
    assert shared.metrics["stage 0: exposed data"].value == pytest.approx(
        alone.metrics["stage 0: exposed data"].value, rel=1e-6
    )


def test_a_ring_hides_what_a_gather_exposes():
    def exposed(exchange):
        return run({"cp": 4}, context_exchange=exchange).metrics["stage 0: exposed context"].value

    assert exposed("ring") < exposed("all-gather")


def test_an_exchange_without_ranks_that_share_sequences_is_refused():
    with pytest.raises(InputError, match="whole sequences"):
        run({"dp": 2}, context_exchange="all-gather")
