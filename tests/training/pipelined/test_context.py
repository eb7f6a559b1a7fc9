"""Jobs whose ranks share sequences: every rank played takes as long, and what is exposed is told."""

import pytest

import simperf
from simperf.errors import InputError
from simperf.training.strategies import ModelParallel
from simperf.workload.transformers import Transformer

LLAMA = Transformer(layers=4, hidden=512, heads=8, ffn=1024, vocabulary=1024, sequence=8192)
MIXTURE = Transformer(
    layers=4, hidden=512, heads=8, vocabulary=1024, sequence=8192, experts=4, experts_per_token=2, expert_ffn=512
)


def run(layout, *, model=LLAMA, batch=8, set=None, **options):
    return simperf.train(
        model,
        on="dgx-a100-80gb",
        layout=layout,
        strategy=ModelParallel(**{"sequence_parallel": layout.get("tp", 1) > 1, **options}),
        stack="megatron-core",
        precision="bf16-master",
        batch=batch,
        set={"program.steps": 2, **(set or {})},
    )


def time(result):
    return result.metrics["time per step"].value


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
    assert time(few) == pytest.approx(time(every), rel=1e-9)
    metrics = few.metrics
    assert metrics["stage 0: exposed context"].value >= 0.0
    assert metrics["stage 0: exposed context"].value + metrics["stage 0: hidden context"].value > 0.0


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
