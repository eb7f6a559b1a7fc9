"""Search of layouts: bounds below what runs give, memory as runs have it, and the best of all that are tried."""

import csv
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

import simperf
from simperf.errors import DeviceMemoryError, InputError
from simperf.layout import Layout
from simperf.report.layout_plans import layouts_output
from simperf.scenario import make_scenario
from simperf.study.executors import Serial
from simperf.study.layouts import make_layouts, plan_layouts
from simperf.study.layouts.axes import LayoutAxes, LayoutChoice, layers_of_stages, layout_choices
from simperf.study.layouts.scenarios import layout_scenario
from simperf.study.layouts.weighing import weigh
from simperf.study.points import failed_row

MODEL = {"layers": 14, "hidden": 1024, "heads": 16, "kv_heads": 8, "ffn": 4096, "vocabulary": 32000, "sequence": 2048}
EXPERTS = {**MODEL, "layers": 4, "experts": 8, "experts_per_token": 2, "expert_ffn": 1024}
TWO_PARTS = ("zb-v", "v-half", "v-min")


def asked(model=MODEL, *, on="dgx-a100", gpus=16, batch=32, program=None, **layouts):
    """A search on two servers by default."""
    tables = {"model": model, "layouts": {"on": on, "gpus": gpus, "batch": batch, **layouts}}
    return make_layouts({**tables, **({"program": program} if program else {})})


def played(request, choice):
    """The run of a layout."""
    return simperf.run(make_scenario(layout_scenario(request, request.machines[0], choice)), record=False)


def held_to_runs(request, number, seed=0):
    """Hold both bounds and memory of some of a request's layouts to their runs."""
    machine = weigh(request, request.machines[0])
    for one in random.Random(seed).sample(machine.fitting, min(number, len(machine.fitting))):
        result = played(request, one.choice)
        step, tight = result.metrics["time per step"].value, machine.tightened(one).bound
        assert 0.5 * step < one.bound <= tight <= step * (1 + 1e-9), one.choice.name
        assert one.memory == pytest.approx(result.metrics["memory"].value, rel=1e-9), one.choice.name


def test_bounds_are_below_runs_and_memory_is_theirs():
    held_to_runs(asked(sharding=["none", "zero-1", "zero-3"], recompute=["none", "selective-op", "full"]), 14)


@pytest.mark.parametrize("schedule", ["gpipe", "zb-h1", *TWO_PARTS, "dualpipe"])
def test_bounds_hold_for_every_schedule(schedule):
    held_to_runs(asked({**MODEL, "layers": 16}, schedule=schedule, pp=[2, 4], microbatch=1), 3)


def test_two_copies_of_a_model_have_as_many_parts_each_as_there_are_stages():
    request = asked(schedule="dualpipe", pp=2, microbatch=1)
    first, *_ = weigh(request, request.machines[0]).fitting
    assert first.choice.stage_layers == ()  # seven layers each of 14, which four parts would not divide
    assert played(request, first.choice).metrics["time per step"].value > 0


@pytest.mark.parametrize(
    "program",
    [
        {"gradient_bucket": "40 MB"},
        {"gradient_bucket": "40 MB", "overlap_weights": True, "steps": 3},
        {"clip": False, "steps": 2},
        {"overlap_messages": True, "synchronous_messages": True},
        {"stack": "torch-fsdp2"},
    ],
)
def test_bounds_hold_with_overlaps_and_other_stacks(program):
    held_to_runs(asked(program=program, tp=[1, 2], microbatch=[1, 2]), 5)


@pytest.mark.parametrize(
    "program", [{}, {"expert_load": "power-law-1.2"}, {"expert_load": "power-law-1.2", "expert_draws": 3}]
)
def test_bounds_hold_for_experts(program):
    request = asked(EXPERTS, program=program, cp=1, tp=[1, 2], ep=[1, 4, 8], microbatch=1, recompute="none")
    machine = weigh(request, request.machines[0])
    assert {one.choice.layout.ep for one in machine.fitting} == {1, 4, 8}
    for one in random.Random(1).sample(machine.fitting, 5):
        step = played(request, one.choice).metrics["time per step"].value
        assert one.bound <= machine.tightened(one).bound <= step


def test_the_search_finds_what_trying_all_finds():
    """Best-first ends with the fastest of all layouts, and what it plays is what `simperf.run` gives."""
    request = asked(tp=[1, 2], cp=1, microbatch=[1, 2], recompute=["none", "full"])
    found = plan_layouts(request, cache=False)
    fitting = found.searched[0].machine.fitting
    times = {one.choice: played(request, one.choice).metrics["time per step"].value for one in fitting}
    assert found.winner.step == min(times.values())
    words = " ".join(one.reason for one in found.ranked)
    assert "less kernels" not in words
    assert "slowed" not in words
    assert {one.choice: one.step for one in found.ranked} == {one.choice: times[one.choice] for one in found.ranked}
    counts = found.counts()
    assert counts["simulated"] < len(fitting)
    assert counts["simulated"] + counts["ruled out by bound"] + counts["do not fit"] == counts["layouts"]
    assert all(one.bound > found.winner.step for one in found.searched[0].left)
    assert found.gap() == 0.0
    assert found.winner.step == simperf.run(found.scenario(1)).metrics["time per step"].value


def test_more_of_the_fastest_are_found_where_they_are_asked_for():
    request = {"model": MODEL, "layouts": {"on": "dgx-a100", "batch": 16, "cp": 1, "tp": [1, 2], "recompute": "none"}}
    whole = plan_layouts({**request, "layouts": {**request["layouts"], "top": 1000}}, cache=False)
    assert not whole.searched[0].left
    five = plan_layouts({**request, "layouts": {**request["layouts"], "top": 5}}, cache=False)
    assert [one.choice for one in five.ranked[:5]] == [one.choice for one in whole.ranked[:5]]


def test_workers_change_nothing():
    request = asked(tp=[1, 2], cp=1, microbatch=[1, 2], recompute="none")
    alone, many = (plan_layouts(request, engine=engine, cache=False) for engine in ("serial", "local:2"))
    assert alone.to_dict() == many.to_dict()


def test_an_interrupted_search_continues(tmp_path):
    """What was played before an interrupt is not played again."""
    request, journal = asked(tp=[1, 2], cp=1, microbatch=[1, 2], recompute="none"), str(tmp_path / "journal")

    def stop(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan_layouts(request, journal=journal, cache=False, progress=stop)
    told = []
    found = plan_layouts(request, journal=journal, cache=False, progress=told.append)
    assert told[0].known == 2
    assert found.to_dict() == plan_layouts(request, cache=False).to_dict()
    with pytest.raises(InputError, match="another study"):
        plan_layouts(asked(tp=1, cp=1), journal=journal, cache=False)


@pytest.mark.parametrize("metric", ["time per step", "tokens per second", "memory"])
def test_a_kept_run_without_what_is_ranked_is_refused(metric, tmp_path):
    request, journal = asked(tp=[1, 2], cp=1, microbatch=2, recompute="none"), tmp_path / "journal"
    plan_layouts(request, journal=str(journal), cache=False)
    journal.write_text(journal.read_text().replace(f'"{metric}":', '"scrambled":'))
    with pytest.raises(InputError, match=metric):
        plan_layouts(request, journal=str(journal), cache=False)


def test_parts_of_gradients_are_kept_a_bucket_at_a_time():
    """`zero-2` needs the size of a bucket, which a search assumes and says."""
    request = asked(tp=1, cp=1, pp=1, microbatch=2, recompute="none", sharding=["zero-1", "zero-2"])
    assert any("buckets of 160 MB" in one for one in request.assumed)
    found = plan_layouts(request, cache=False)
    assert not found.failed
    assert {one.choice.layout.sharding for one in found.ranked} == {"zero-1", "zero-2"}
    own = asked(tp=1, cp=1, sharding="zero-2", program={"gradient_bucket": "10 MB"})
    assert not any("bucket" in one for one in own.assumed)


def test_machines_and_numbers_of_gpus_are_ranked_together():
    data = {
        "model": MODEL,
        "plan": {"tokens": 1e9, "deadline": "30 days"},
        "layouts": {"on": ["dgx-a100", "dgx-h100"], "gpus": [8, 16], "batch": 32, "cp": 1, "tp": 1, "microbatch": 2},
        "prices": {"own": {"dgx-a100": "20 USD/h", "dgx-h100": "60 USD/h"}},
    }
    found = plan_layouts(data, cache=False)
    fastest = {}
    for one in found.ranked:
        fastest.setdefault((one.machine.name, one.machine.gpus), one)
        assert one.time == pytest.approx(one.step * -(-1e9 // (32 * 2048)))
        assert one.cost == pytest.approx(one.time / 3600 * one.machine.price)
    assert len(fastest) == 4
    assert found.winner.machine.name == "dgx-h100"
    assert found.winner.machine.gpus == 16
    best = [one for one in found.ranked if one.best]
    cheapest = min(found.ranked, key=lambda one: one.cost)
    assert found.winner in best
    assert cheapest in best
    assert all(one in fastest.values() for one in best)
    for one in found.ranked:
        beaten = any(
            other.step <= one.step and other.cost <= one.cost and other.machine.gpus <= one.machine.gpus
            for other in found.ranked
            if other is not one
        )
        assert one.best is not beaten


def test_where_nothing_fits_the_nearest_does():
    """Memory comes first, and the layout that is named runs, in place of those that do not."""
    large = {**MODEL, "layers": 24, "hidden": 8192, "heads": 64, "ffn": 28672}
    request = asked(large, gpus=16, tp=8, cp=1, pp=1, sharding="none", recompute="none", microbatch=1)
    with pytest.raises(InputError, match=r"memory: none of .* fits") as caught:
        plan_layouts(request, cache=False)
    assert caught.value.problems[0].expected
    (full,) = weigh(request, request.machines[0]).full
    with pytest.raises(DeviceMemoryError):
        played(request, full.choice)
    assert 'with layout.sharding = "zero-1"' in caught.value.problems[0].expected
    wider = asked(large, gpus=16, tp=8, cp=1, pp=1, sharding="zero-1", recompute="none", microbatch=1)
    nearest = weigh(wider, wider.machines[0]).fitting[0]
    assert played(wider, nearest.choice).metrics["memory"].value == pytest.approx(nearest.memory)


def test_a_change_of_what_was_asked_for_comes_first():
    request = asked({**MODEL, "layers": 96, "hidden": 2048}, gpus=8, tp=1, cp=1, pp=1, sharding="none", microbatch=4)
    with pytest.raises(InputError) as caught:
        plan_layouts(request, cache=False)
    assert " with " in caught.value.problems[0].expected


def test_more_gpus_are_named_where_no_change_fits():
    large = {**MODEL, "layers": 48, "hidden": 8192, "heads": 64, "ffn": 28672}
    with pytest.raises(InputError) as caught:
        plan_layouts(asked(large, gpus=4, batch=4), cache=False)
    nearest = caught.value.problems[0].expected
    gpus, batch = re.fullmatch(r"(\d+) GPUs of dgx-a100(?: with a batch of (\d+))?: .*", nearest).groups()
    assert batch is None  # that of the search is kept where it can be
    found = plan_layouts(asked(large, gpus=int(gpus), batch=4, microbatch=1), cache=False)
    assert found.ranked


def test_the_nearest_is_named_where_many_more_gpus_cannot_be_asked_for(monkeypatch):
    """Four times as many GPUs are enough here; 64 times as many are more than a search takes."""
    monkeypatch.setattr("simperf.study.layouts.request._MOST_GPUS", 2048)
    large = {**MODEL, "layers": 512, "hidden": 16384, "heads": 128, "ffn": 65536}
    one = {"tp": 8, "cp": 1, "pp": 1, "microbatch": 1, "recompute": "full", "sharding": "zero-3"}
    with pytest.raises(InputError) as caught:
        plan_layouts(asked(large, gpus=256, batch=256, **one), cache=False)
    assert caught.value.problems[0].expected.startswith("1024 GPUs of dgx-a100: ")


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"layouts": {"on": "dgx-h100", "model": "llama3-9b"}}, "did you mean"),
        ({"layouts": {"on": "dgx-h1000", "model": "llama3-8b"}}, "did you mean"),
        ({"layouts": {"model": "llama3-8b"}}, "no machine is given"),
        ({"layouts": {"on": "dgx-h100", "model": "resnet50"}}, "transformer by its dimensions"),
        ({"layouts": {"on": "dgx-a100-x4", "model": "llama3-8b", "gpus": 64}}, "has 32 GPUs"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b", "schedule": "1f2b"}}, "no such schedule"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b", "tq": 2}}, "unknown key"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b"}, "program": {"microbatch": 2}}, "the search sets it"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b"}, "program": {"jitter": "normal"}}, "nothing varies"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b"}, "plan": {"deadline": "2 days"}}, "tokens"),
        (
            {"layouts": {"on": "dgx-h100", "model": "llama3-8b"}, "plan": {"tokens": 1e12, "budget": "9 USD"}},
            "there is no price",
        ),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b"}, "plan": {"tokens": 1e9, "deadline": "60 dayz"}}, "dayz"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b"}, "plan": {"force": 1}}, "true or false"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b", "top": 0}}, "above 0"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b", "within": "-1"}}, "above 0"),
        ({"layouts": {"on": "dgx-h100", "model": "llama3-8b", "time": "-1 s"}}, "above 0"),
    ],
)
def test_what_is_wrong_is_told(tables, told):
    with pytest.raises(InputError, match=told):
        make_layouts(tables)


def test_a_batch_that_no_layout_divides_is_refused():
    with pytest.raises(InputError, match="no layout divides") as caught:
        plan_layouts(asked(batch=7, tp=1, cp=1, pp=1), cache=False)
    assert "16" in caught.value.problems[0].expected


def test_a_batch_of_too_many_micro_batches_is_refused_before_any_run():
    narrow = {"tp": 4, "pp": 2, "sharding": "zero-1", "recompute": "full", "schedule": "1f1b"}
    with pytest.raises(InputError, match="many micro-batches") as caught:
        plan_layouts(asked(batch=8_000_000, **narrow), cache=False)
    (problem,) = caught.value.problems
    assert problem.key.endswith("batch")
    most = int(problem.expected.split()[2].rstrip(","))
    machine = weigh(asked(batch=most, **narrow), asked(**narrow).machines[0])
    assert machine.fitting, "the batch that the message names is taken"
    assert not weigh(asked(batch=2 * most, **narrow), asked(**narrow).machines[0]).fitting


def test_layouts_of_too_many_micro_batches_are_left_out_and_counted():
    narrow = {"tp": 4, "pp": 2, "sharding": "zero-1", "recompute": "full", "schedule": "1f1b"}
    request = asked(batch=1_280_000, **narrow, microbatch=[1, 8])
    machine = weigh(request, request.machines[0])
    assert {one.choice.microbatch for one in machine.fitting} == {8}
    assert machine.refusals == {"batch: more than 2e+07 events would be simulated": 1}
    assert [one.choice.microbatch for one in machine.crowded] == [1]


def test_layouts_of_too_many_micro_batches_may_be_faster():
    """The gap of the bound has them, as runs that failed."""
    narrow = {"tp": 4, "pp": 2, "sharding": "zero-1", "recompute": "full", "schedule": "1f1b", "microbatch": 1}
    found = plan_layouts(asked(**narrow), cache=False)
    assert not found.scenario(1).force
    (searched,) = found.searched
    assert found.gap() == 0.0
    fast = replace(searched.machine.fitting[0], bound=found.ranked[0].step / 2)
    searched.machine.crowded.append(fast)
    assert found.gap() == pytest.approx(1.0)


def test_an_axis_that_no_layout_has_is_refused_by_its_name():
    with pytest.raises(InputError, match="no layout divides") as caught:
        plan_layouts(asked(batch=32, tp=3), cache=False)
    (problem,) = caught.value.problems
    assert (problem.key, problem.expected.split(",")[0]) == ("layouts.tp", "another value")


def test_a_machine_without_a_price_is_not_cheaper_than_others():
    layouts = {"on": ["dgx-a100", "p4de-24xlarge"], "gpus": 8, "batch": 16, "tp": 1, "pp": 1, "cp": 1}
    found = plan_layouts(make_layouts({"model": MODEL, "layouts": layouts, "plan": {"tokens": 1e9}}), cache=False)
    firsts = {one.machine.name: one for one in reversed(found.ranked)}
    assert (firsts["dgx-a100"].cost, firsts["dgx-a100"].best) == (None, True)
    assert firsts["p4de-24xlarge"].cost > 0
    assert firsts["p4de-24xlarge"].best
    assert sum(one.best for one in found.ranked) == 2


def test_where_nothing_is_in_time_the_first_is_late_too():
    tables = {"model": MODEL, "layouts": {"on": "dgx-a100", "gpus": 16, "batch": 32, "tp": 1, "pp": 1, "cp": 1}}
    found = plan_layouts(make_layouts({**tables, "plan": {"tokens": 1e12, "deadline": "1 h"}}), cache=False)
    assert not any(one.feasible or one.best for one in found.ranked)
    assert found.winner.reason.endswith("too late")
    assert all("too late; 1." in one.reason and "the step" in one.reason for one in found.ranked[1:])
    text = layouts_output(found, "table")
    assert "No layout meets the deadline of " in text
    assert "Pareto" not in text


def test_parts_of_a_model_that_do_not_divide_its_layers_count_its_ends():
    assert layers_of_stages(12, 4) == ()
    assert layers_of_stages(14, 4) == (3, 4, 4, 3)
    assert layers_of_stages(13, 4) is None
    model = asked().model
    given = {"gpus": 16, "domain": 8, "batch": 32}
    whole = [one for one in layout_choices(LayoutAxes(), model, **given) if one]
    assert len(set(whole)) == len(whole)
    assert all(one.layout.ranks == 16 and one.layout.tp <= 8 for one in whole)
    assert {one.layout.pp for one in whole} >= {1, 2, 4, 8}
    assert LayoutChoice(Layout(tp=2, pp=4), chunks=2, schedule="interleaved").name == (
        "tp=2 pp=4, micro-batch 1, interleaved x2"
    )


def test_every_key_of_json_is_documented_and_every_documented_key_is_there():
    """Parts of a model that do not divide its layers have a key of their own, as chunks have."""
    one = {"tp": 4, "sharding": "zero-1", "recompute": "full", "microbatch": 1}
    request = asked(**one, pp=4, schedule=["interleaved", "1f1b"], top=9, precision=["bf16-master", "fp32"], batch=16)
    found = json.loads(layouts_output(plan_layouts(request), "json"))
    rows = found.pop("ranked")
    found["failed"] = [{"layout": "", "reason": ""}] + found["failed"]
    written = {*found, "ranked", *(f"counts.{key}" for key in found["counts"])}
    written |= {f"ranked[].{key}" for row in rows for key in row}
    written |= {f"failed[].{key}" for row in found["failed"] for key in row}
    page = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text("utf-8")
    section = page.partition("## Searches of layouts")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert written == {key for cell in cells for key in re.findall(r"`([^`]+)`", cell)}
    numbers = found["counts"]
    parts = ("do not fit", "simulated", "without result", "ruled out by bound", "not reached")
    assert numbers["layouts"] == sum(numbers[key] for key in parts)


def test_the_table_is_legible_at_80_columns(tmp_path):
    found = plan_layouts(asked(tp=1, cp=1, recompute="none"), cache=False)
    text = layouts_output(found, "table")
    assert max(map(len, text.splitlines())) <= 80
    assert "are ruled out" in " ".join(text.split())
    rows = json.loads(layouts_output(found, "json"))["ranked"]
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    table = list(csv.DictReader(layouts_output(found, "csv").splitlines()))
    assert list(table[0])[:4] == ["number", "machine", "gpus", "tp"]
    assert [[float(row[f"step_{end} [s]"]) for end in ("low", "high")] for row in table] == [
        row["step_interval"] for row in rows
    ]
    found.save(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["ranked"] == rows


def test_failures_make_the_whole_job_longer():
    """The share that is left falls with the nodes, and the time is that of all steps over it."""
    data = {
        "model": MODEL,
        "plan": {"tokens": 1e11},
        "layouts": {"on": "dgx-a100", "gpus": [16, 64], "batch": 64, "cp": 1, "tp": 1, "microbatch": 1, "pp": 1},
        "failures": {"node_mtbf": "100 h", "checkpoint": "500 MB/s", "restart": "10 min", "runs": 10},
    }
    found = plan_layouts(data, cache=False)
    steps = -(-1e11 // (64 * 2048))
    for one in found.ranked:
        assert one.time == pytest.approx(one.step * steps / one.goodput)
    few, many = (max(one.goodput for one in found.ranked if one.machine.gpus == gpus) for gpus in (16, 64))
    assert 0.5 < many < few < 1.0
    with pytest.raises(InputError, match="number of tokens"):
        make_layouts({**data, "plan": {}})


def test_a_search_may_end_within_a_share_of_the_fastest():
    tables = {"on": "dgx-a100", "gpus": 16, "batch": 32, "cp": 1, "tp": [1, 2], "recompute": ["none", "full"]}
    whole, early = (
        plan_layouts({"model": MODEL, "layouts": {**tables, "within": within}}, cache=False) for within in (0, "10 %")
    )
    assert len(early.ranked) < len(whole.ranked)
    assert 0.0 < early.gap() <= 0.1
    assert whole.gap() == 0.0
    assert early.winner.step <= whole.winner.step * (1 + early.gap())


def test_a_layout_that_cannot_be_played_may_be_faster():
    """What fails is told with its reason, and its bound is part of the gap."""
    request = asked(cp=1, tp=1, pp=[1, 2], microbatch=1, recompute="none", sharding="zero-1")
    whole = plan_layouts(request, cache=False)

    class Failing(Serial):
        def submit(self, work, task):
            if task["name"] == whole.winner.choice.name:
                return super().submit(failed_row, task, "too many events")
            return super().submit(work, task)

    found = plan_layouts(request, engine=Failing(), cache=False)
    assert found.failed == ((whole.winner.choice.name, "too many events"),)
    assert found.gap() == pytest.approx(found.winner.step / whole.winner.bound - 1)
    assert "may be faster" in " ".join(layouts_output(found, "table").split())


PARTS = {
    "mine": """kind = "gpu"
title = "A GPU of one's own"
architecture = "hopper"
memory_bandwidth = "6 TB/s"
memory_capacity = "192 GiB"
l2 = "64 MiB"
sms = 144
[peak]
fp32 = "80 TFLOP/s"
bf16 = "1200 TFLOP/s"
[efficiency]
gemm = 0.3
[source]
default = "a guess"
""",
    "box": """kind = "server"
title = "Two of them"
[[node]]
id = "gpu{0,1}"
gpu = "mine"
[[node]]
id = "cpu0"
cpu = "xeon-8168"
[[link]]
a = "gpu{0,1}"
b = "cpu0"
part = "pcie5-x16"
[source]
default = "a guess"
""",
}


def test_a_layout_on_a_gpu_with_efficiencies_of_its_own_has_no_interval_as_its_run_has_none(tmp_path):
    for name, text in PARTS.items():
        (tmp_path / f"{name}.toml").write_text(text)
    narrow = {"tp": [1], "pp": [1], "cp": [1], "folder": str(tmp_path)}
    plan = plan_layouts(asked(on="box", gpus=2, batch=4, **narrow))
    assert {one.interval for one in plan.ranked} == {None}
    assert "efficiency of mine" in plan.why_not
