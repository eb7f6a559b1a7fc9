"""Architectures that are left out: on invented tables, and written as the profile that `--samples` draws from."""

import json
from dataclasses import replace

import numpy as np
import pytest

from simperf.accuracy.leave_out import kernels as module
from simperf.accuracy.leave_out import measured_steps as steps_module
from simperf.accuracy.leave_out import profile as text_module
from simperf.accuracy.leave_out.kernels import catalogue_misses, elsewhere, unseen_models
from simperf.accuracy.leave_out.profile import unseen_text
from simperf.cli import main
from simperf.cost import Roofline
from simperf.hardware import Catalog
from simperf.scenario.calibration import UNSEEN, unseen_profile
from simperf.workload.kinds import unary
from tests.truth.left_out_intervals import kernel_coverage

pytest.importorskip("scipy")

CATALOG = Catalog.load()
NAMES = {"P100-PCIE": "p100-pcie-16gb", "V100-PCIe-32GB": "v100-pcie-32gb", "A100-PCIE-40GB": "a100-pcie-40gb"}
NAMES |= {"A100-PCIE-80GB": "a100-pcie-80gb", "L4": "l4"}
CASE = {"id": "roof-elementwise-x", "source": {"repo": "nobody/nothing"}}


@pytest.fixture
def tables(monkeypatch):
    """Elementwise kernels at a share of each GPU's memory, given by name."""
    monkeypatch.setattr(module, "kernel_cases", iter)
    monkeypatch.setattr(text_module, "kernel_cases", iter)

    def made(reached):
        found = []
        for gpu, share in reached.items():
            roofline = Roofline(CATALOG.gpu(NAMES[gpu]), efficiency={"elementwise": share})
            ops = [unary("relu", 10**7 * 2**number) for number in range(4)]
            found.append((CASE, gpu, [("", op, roofline.cost(op).time) for op in ops]))
        return found

    return made


def test_an_architecture_is_predicted_from_the_others_alone(tables):
    found = catalogue_misses(tables(dict.fromkeys(NAMES, 0.8)))["stream"]
    reached: dict[str, list[float]] = {}
    for part in map(CATALOG.gpu, NAMES.values()):
        reached.setdefault(part.architecture, []).append(np.log(part.efficiency["elementwise"]))
    for name, rows in found.items():
        others = [np.mean(values) for other, values in reached.items() if other != name]
        for row in rows:
            assert row == pytest.approx(np.full(4, np.median(others) - np.log(0.8)), abs=2e-3)
    assert {name: len(rows) for name, rows in found.items()} == {"pascal": 1, "volta": 1, "ampere": 2, "ada": 1}


def test_its_own_readings_have_no_part_in_its_interval(tables):
    before = kernel_coverage(tables(dict.fromkeys(NAMES, 0.8)))
    after = kernel_coverage(tables({**dict.fromkeys(NAMES, 0.8), "L4": 0.3}))
    assert after["stream", "ada"][2] == before["stream", "ada"][2]
    assert after["stream", "ada"][0] == 0 < before["stream", "ada"][0]
    assert after["stream", "volta"][2] > 1.5 * before["stream", "volta"][2]


def invented(common, own, alike, count, seed):
    """Misses of `count` architectures, with two sorts of kernels each."""
    rng = np.random.default_rng(seed)
    found = {"product": {}, "stream": {}}
    for number in range(count):
        shared = rng.standard_normal()
        for sort, boards in found.items():
            middle = common * (np.sqrt(alike) * shared + np.sqrt(1 - alike) * rng.standard_normal())
            boards[f"a{number} {sort}"[:4].strip()] = [middle + own * rng.standard_normal(20)]
    return found


def test_what_is_shared_comes_back():
    found = unseen_models(invented(0.3, 0.1, 0.5, 60, seed=3))
    product = found["unseen.product"].constant
    assert product["common"].value == pytest.approx(0.3, rel=0.2)
    assert product["own"].value == pytest.approx(0.1, rel=0.1)
    alike = found["unseen.gpu"].constant["alike"]
    assert alike.low < 0.5 < alike.high
    assert product["common"].low < 0.3 < product["common"].high


def test_few_architectures_are_known_to_be_few():
    few, many = (unseen_models(invented(0.3, 0.1, 0.0, count, seed=1))["unseen.product"] for count in (4, 60))
    assert few.constant["common"].stderr > 2.0 * many.constant["common"].stderr


def test_it_is_written_as_a_profile(tables, tmp_path):
    cases = tables({"P100-PCIE": 0.7, "V100-PCIe-32GB": 0.9, "A100-PCIE-40GB": 0.9, "L4": 0.8})
    path = tmp_path / "mine.toml"
    path.write_text(unseen_text(cases))
    assert unseen_text(cases) == path.read_text()
    assert "Written by `simperf calibrate leave-out`" in path.read_text()
    found = CATALOG.profile(str(path))
    assert found.model["unseen.stream"].at()["common"] > 0.1
    assert (found.draws, found.kernels(1), found.device(1), found.frontend(1)) == (0, {}, {}, {})


def test_from_a_folder_of_measured_data_to_a_profile(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(steps_module, "measured_steps", lambda: iter(()))
    cases = []
    for gpu, share in zip(NAMES, (0.7, 0.9, 0.85, 0.9, 0.8), strict=True):
        rate = share * CATALOG.gpu(NAMES[gpu]).memory_bandwidth
        table = [["relu", rows, 4096, rows * 4096 * 8 / rate * 1e3] for rows in (4096, 16384, 65536)]
        measured = {"columns": ["op", "B", "H", "latency_ms"], "table": table}
        case = {"id": f"roof-elementwise-{gpu}", "kind": "roofline", "hardware": {"gpu": gpu}, "workload": {}}
        cases.append({**case, "source": {"repo": "nobody/nothing"}, "measured": measured})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    assert main(["calibrate", "leave-out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert '"measured sources" = "nobody/nothing"' in shown
    assert main(["calibrate", "leave-out", str(tmp_path), "-o", str(tmp_path / "mine.toml")]) == 0
    assert (tmp_path / "mine.toml").read_text() == shown
    assert main(["calibrate", "leave-out", str(tmp_path / "nowhere")]) == 2


def test_the_shipped_one_has_every_sort_and_figures_alone():
    found = unseen_profile()
    assert found.name == UNSEEN
    steps = {"unseen.step-fp32", "unseen.step-tf32", "unseen.step-half"}
    assert set(found.model) == {"unseen.product", "unseen.rows", "unseen.stream", "unseen.gpu"} | steps
    assert all(set(found.model[name].at()) == {"middle", "common", "own"} for name in steps)
    assert found.model["unseen.product"].at()["common"] > found.model["unseen.stream"].at()["common"] > 0.0
    assert 0.0 <= found.model["unseen.gpu"].at()["alike"] <= 1.0
    assert not any(model.held_out for model in found.model.values())


def test_attention_elsewhere_counts_architectures_that_cost_it_by_shape():
    catalog = CATALOG
    names = ("v100-sxm2-16gb", "a100-sxm4-80gb", "t4")
    parts = {"product": {name: catalog.gpu(name) for name in names}}
    found = elsewhere(parts, catalog.gpu("t4"))
    assert found["attention"] == pytest.approx((0.55 * 0.60) ** 0.5)


def test_limited_matrix_units_have_the_shares_of_their_full_rate_and_nothing_else_changes():
    others = {name: CATALOG.gpu(name) for name in ("h100-sxm5-80gb", "l4")}
    parts = dict.fromkeys(("product", "stream", "rows"), others)
    limited, whole = CATALOG.gpu("rtx-3090"), replace(CATALOG.gpu("rtx-3090"), matrix_fraction=1.0)
    found, plain = elsewhere(parts, limited), elsewhere(parts, whole)
    assert plain.items() <= found.items()
    added = {key: found[key] for key in found.keys() - plain.keys()}
    assert set(added) == {f"{family}-{one}" for family in ("gemm", "conv") for one in ("fp16", "bf16", "tf32")}
    assert all(value == min(1.0, 2.0 * plain[key.partition("-")[0]]) for key, value in added.items())
