"""What-if questions: contributions of runs that add up, with the critical path of each."""

import pytest

import simperf
from simperf.errors import InputError
from simperf.scenario.load import change_scenario
from simperf.study.limiting_link import dimension_of
from simperf.study.virtual import speed_up
from simperf.study.what_if import what_if

JOB = {
    "scenario": {"title": "a job", "answer": {"metric": "time per step"}},
    "machine": {
        "kind": "cluster",
        "server": "dgx-b200",
        "count": 2,
        "fabric": {"type": "rail", "link": "infiniband-ndr", "switch": "infiniband-ndr-switch"},
    },
    "frontend": {"use": "pytorch"},
    "model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 5632, "vocabulary": 32000, "sequence": 1024},
    "layout": {"dp": 16, "sharding": "zero-1"},
    "program": {
        "use": "train",
        "strategy": "model-parallel",
        "stack": "megatron-core",
        "precision": "bf16-master",
        "batch": 32,
        "steps": 1,
    },
}


@pytest.fixture(scope="module")
def job():
    return simperf.make_scenario(JOB)


@pytest.fixture(scope="module")
def found(job):
    return what_if(job, ["network=2x,host1=0.5x", "batch=0.5x"])


def test_contributions_and_interaction_add_up_to_the_total(found):
    assert [one.name for one in found.alone] == ["network=2x", "host1=0.5x", "batch=0.5x"]
    total = sum(one.change for one in found.alone) + found.interaction
    assert total == pytest.approx(found.together.value - found.base.value, abs=1e-15)
    assert found.alone[0].change < 0 < found.alone[1].change
    assert found.alone[2].change < 0


def test_each_number_is_that_of_a_run(job, found):
    def step(scenario):
        return simperf.run(scenario).metrics["time per step"].value

    assert found.base.value == step(job)
    assert found.alone[0].value == step(speed_up(job, {"infiniband-ndr": 2.0}))
    slow = change_scenario(job, {"program.speeds": [1.0] * 8 + [0.5] * 8})
    assert found.alone[1].value == step(slow)
    halved = change_scenario(job, {"program.batch": 16})
    assert found.alone[2].value == step(halved)
    both = change_scenario(job, {"program.speeds": [1.0] * 8 + [0.5] * 8, "program.batch": 16})
    assert found.together.value == step(speed_up(both, {"infiniband-ndr": 2.0}))


def test_the_critical_path_of_each_run_adds_up_to_its_time(found):
    for one in found.runs:
        assert sum(one.path.values()) == pytest.approx(one.time, rel=1e-9)
    assert "exposed data" in found.base.path
    assert "exposed data -" in found.reason(found.alone[0])
    assert "compute +" in found.reason(found.alone[1])


def test_the_link_that_limits_a_faster_network_is_named(job):
    found = what_if(job, ["network=2x", "speed.pcie5-x16=3x"])
    network, slot = found.alone
    assert "; the NIC's PCIe slot limits (pcie5-x16, 50.12 GB/s)" in found.reason(network)
    assert "; the NIC's port limits (infiniband-ndr, 47.86 GB/s)" in found.reason(slot)
    assert found.together.limit == "", "both links of the route are faster"
    assert found.together.change < 2 * network.change, "the slot hid what the network brings"
    assert found.to_dict()["runs"][1]["limit"] == network.limit


def test_a_link_between_servers_that_limits_a_faster_nvlink_is_named(job):
    found = what_if(job, "nvlink=2x")
    assert "; the NIC's port limits (infiniband-ndr, " in found.reason(found.together)


def test_the_link_that_limits_domains_of_72_is_named(job):
    larger = {**JOB["model"], "hidden": 4096, "ffn": 11264}  # beside which latencies are short
    ranks, program = {"dp": 144, "sharding": "zero-1"}, {**JOB["program"], "batch": 144}
    racks = on("gb200-nvl72", model=larger, layout=ranks, program=program)
    found = what_if(racks, "nvlink=4x")  # twice as fast, NVLink is still the busiest
    assert "; the NIC's port limits (infiniband-ndr, " in found.reason(found.together)
    assert what_if(job, "domain=72").together.limit.startswith("NVLink limits (nvlink5, ")


@pytest.mark.parametrize("change", ["network=1.02x", "network=0.5x", "host1=2x"])
def test_no_other_link_limits(job, change):
    assert what_if(job, change).together.limit == ""


def test_one_change_is_all_of_them(job):
    found = what_if(job, "precision=fp8")
    assert found.together == found.alone[0]
    assert found.interaction == 0.0
    assert len(found.runs) == 2
    same = change_scenario(job, {"program.product_precision": "fp8-current"})
    assert found.together.value == simperf.run(same).metrics["time per step"].value


def test_a_wider_domain_of_nvlink(job):
    found = what_if(job, "domain=72")
    assert "server gb200-nvl72, GPU " in found.reason(found.alone[0])
    assert found.alone[0].path.get("exposed data", 0.0) < found.base.path["exposed data"]


def test_a_faster_network_of_one_domain_changes_nothing(job):
    """The rack that has all GPUs has no links between servers, and its NVLinks stay as they are."""
    found = what_if(job, ["network=2x,domain=72"])
    assert found.together.value == what_if(job, "domain=72").together.value
    assert found.interaction == pytest.approx(-found.alone[0].change)


@pytest.mark.parametrize(("server", "gpu"), [("dgx-b200", "gb200"), ("dgx-b300", "gb300")])
def test_a_wider_domain_has_the_nearest_gpu(server, gpu):
    assert f"GPU {gpu} for" in what_if(on(server), "domain=72").alone[0].remark


def on(server, **table):
    return simperf.make_scenario({**JOB, "machine": {**JOB["machine"], "server": server}, **table})


def test_a_domain_that_an_architecture_does_not_have_names_what_to_write():
    job = on("dgx-h100")
    with pytest.raises(InputError, match="gb200-nvl72 and gb300-nvl72 join 72 of another architecture") as caught:
        what_if(job, "domain=72")
    (problem,) = caught.value.problems
    change = problem.expected.partition(",")[0]
    assert change == "machine.server=gb200-nvl72"
    assert what_if(job, change).together.change < 0
    with pytest.raises(InputError) as caught:
        what_if(job, "domain=4")  # 2 servers of 4 are too few for 16 ranks
    assert caught.value.problems[0].expected == "another change"


@pytest.mark.parametrize("precision", ["fp16-master", "bf16-pure", "fp32"])
def test_precisions_of_training(job, precision):
    found = what_if(job, f"precision={precision}")
    same = change_scenario(job, {"program.precision": precision})
    assert found.together.value == simperf.run(same).metrics["time per step"].value


def test_a_precision_of_training_that_products_hide(job):
    narrow = change_scenario(job, {"program.product_precision": "fp8-current"})
    with pytest.raises(InputError, match="precision=as-weights") as caught:
        what_if(narrow, "precision=bf16-master")
    change = caught.value.problems[0].expected.partition(" ")[0]
    assert what_if(narrow, change).together.value == simperf.run(job).metrics["time per step"].value


def test_a_batch_of_each_gpu():
    job = simperf.load_scenario("training/buckets", {"program.batch_per_gpu": 32})
    found = what_if(job, "batch=0.5x")
    assert found.together.remark == "16 samples a GPU for 32"
    same = change_scenario(job, {"program.batch_per_gpu": 16})
    assert found.together.value == simperf.run(same).headline[1].value
    with pytest.raises(InputError, match=r"program\.batch_per_gpu=64, or batch=0\.5x"):
        what_if(job, "batch=64")


def test_keys_and_resources(job):
    found = what_if(job, ["speed.nvlink5=4x", "program.recompute=full"])
    assert found.alone[0].change <= 0 < found.alone[1].change


def test_two_slow_hosts(job):
    found = what_if(job, "host0=0.5x,host1=0.5x")
    assert found.interaction < 0, "the second slow server costs little more"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ("", "0 changes"),
        ("network", "such as network=2x"),
        ("network=2", "such as 2x or 0.8x"),
        ("network=1x", "changes nothing"),
        ("network=0x", "above 0"),
        ("netwrk=2x", "did you mean 'network'?"),
        ("network=2x,network=3x", "stands here twice"),
        ("network=2x,speed.infiniband-ndr=3x", "is changed by network=2x, too"),
        ("host2=0.5x", "host0 to host1"),
        ("domain=8", "changes nothing"),
        ("domain=9", "no server of the catalogue"),
        ("precision=fp3", "no such precision"),
        ("precision=bf16", "changes nothing"),
        ("precision=bf16-master", "changes nothing"),
        ("precision=bf17-master", "did you mean 'bf16-master'"),
        ("batch=0.3x", "whole number"),
        ("batch=32", "another whole number"),
        ("batch=8", "with batch=8"),
        ("speed.nothing=2x", "no such resource"),
        ("program.nothing=2", "with program.nothing=2"),
    ],
)
def test_what_is_wrong_is_told(job, changes, told):
    with pytest.raises(InputError) as caught:
        what_if(job, changes)
    assert told in str(caught.value)


def test_a_machine_without_a_network():
    with pytest.raises(InputError, match="no network between servers"):
        what_if("d2l/sync-160mb", "network=2x")


def test_a_job_that_has_no_batch_or_devices_of_different_speed():
    with pytest.raises(InputError, match="no batch"):
        what_if("d2l/sync-160mb", "batch=2x")
    with pytest.raises(InputError, match="different speed"):
        what_if("d2l/sync-160mb", "host0=0.5x")


@pytest.mark.parametrize(
    ("track", "dimension"), [("n0/gpu0/data", "data"), ("n0/gpu0/send", ""), ("n0/gpu0/stream 0", ""), ("", "")]
)
def test_a_send_is_of_no_dimension(track, dimension):
    assert dimension_of(track, "communication") == dimension
