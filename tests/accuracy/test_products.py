"""Grading of matrix products by shape: halves, timing loops, fits and profiles, on tables made of known constants."""

import gzip
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import simperf
from simperf.accuracy.fits.products import ProductFit, fit_products, of_architecture, predicted_times
from simperf.accuracy.kernel_grades import kernel_grades, measured_kernels
from simperf.accuracy.lattice_profile import (
    attention_calls,
    expert_calls,
    kernel_calls,
    kernel_profile,
    product_calls,
    profile_model,
)
from simperf.accuracy.product_tables import layer_kernels, product_tables, weight_copies
from simperf.accuracy.products import kernel_times, product_grades
from simperf.cost import FittedRoofline, Roofline
from simperf.cost.products import SHARED
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.report.accuracy_output import kernels_markdown
from simperf.workload.kinds import attention, moe
from simperf.workload.loops import timing_loop

H100, H200 = (Catalog.load().gpu(name) for name in ("h100-sxm5-80gb", "h200-sxm-141gb"))
DEVICES = {"NVIDIA H100 80GB HBM3": H100, "NVIDIA H200": H200}
LOOP = """
[scenario]
title = "a product in a timing loop"
[machine]
use = "dgx-h100"
[program]
use = "operations"
ops = [{ op = "matmul", m = 512, n = 1024, k = 2048, dtype = "bf16" }]
copies = 5
"""
COLUMNS = "gemm_dtype,m,n,k,latency"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of both GPUs that the catalogue's constants made: H100 as they are, H200 with all times 1.1 times."""
    home = tmp_path_factory.mktemp("truth") / "llm" / "kernels"
    home.mkdir(parents=True)
    entries = []
    for number, (device, part) in enumerate(DEVICES.items()):
        lines = [COLUMNS]
        for layer in ("bfloat16", "fp8", "fp8_block"):
            for m in (1, 16, 300, 1024, 4096):
                for n in (128, 1024, 6144):
                    for k in (512, 2048, 8192):
                        time = sum(Roofline(part).cost(op).time for op in layer_kernels(layer, m, n, k, part=part))
                        lines.append(f"{layer},{m},{n},{k},{time * (1.0, 1.1)[number] * 1e3!r}")
        file = f"g{number}_gemm.csv.gz"
        (home / file).write_bytes(gzip.compress("\n".join(lines).encode()))
        entries.append({"file": file, "columns": COLUMNS.split(","), "constant": {"device": device}})
    (home / "index.json").write_text(json.dumps({"source": "made", "tables": entries}))
    return product_tables(home.parents[1])


def test_half_of_the_shapes_is_for_fitting_whatever_the_gpu_or_layer(tables):
    chosen = {}
    for table in tables:
        for shape, fitted in zip(table.shapes, table.fitted, strict=True):
            assert chosen.setdefault(shape, fitted) == fitted
    assert 0.3 < np.mean(list(chosen.values())) < 0.7


def test_a_layer_is_timed_with_as_many_weights_as_fill_the_l2():
    assert [weight_copies(H100, size) for size in (1e3, 20e6, 60e6)] == [5, 3, 1]
    small, large = (layer_kernels("bfloat16", 1, side, side, part=H100)[-1] for side in (1024, 16384))
    assert small.reuse == pytest.approx(5 * 2 * 1024**2, rel=0.01)
    assert large.reuse == pytest.approx(2 * 16384**2, rel=0.01)


def test_the_fit_and_the_grade_share_one_formula(tables):
    for table in tables:
        constants = ProductFit(SHARED, {table.part.architecture: table.part.product})
        model = Roofline(table.part)
        assert predicted_times(table, constants) == pytest.approx(kernel_times(table, model), rel=1e-9)


def test_constants_that_made_a_table_are_found_again(tables):
    made = [table for table in tables if table.part is not None and table.part.name == H100.name]
    found = fit_products(made, thin=1)
    for table in made:
        assert np.median(np.abs(predicted_times(table, found) / table.measured - 1)) < 0.02
    assert found.own["hopper"]["bf16"] == pytest.approx(H100.product["bf16"], rel=0.05)


def test_an_architecture_without_constants_takes_the_mean_of_the_others():
    known = ProductFit(own={"one": {"bf16": 0.4, "fill": 1e-6}, "two": {"bf16": 0.9, "fp8": 0.5, "fill": 4e-6}})
    found = of_architecture(known, "three").own["three"]
    assert found == pytest.approx({"bf16": 0.6, "fp8": 0.5, "fill": 2e-6})
    assert of_architecture(known, "one").own["one"] == pytest.approx({"bf16": 0.4, "fp8": 0.5, "fill": 1e-6})


def test_a_profile_takes_away_what_a_gpu_has_of_its_own(tables, tmp_path):
    mine = [table for table in tables if table.part.name == H200.name]
    refined = profile_model([product_calls(table) for table in mine])
    for table in mine:
        graded = ~table.fitted
        bare, corrected = (
            np.median(np.abs(kernel_times(table, model) / table.measured - 1)[graded])
            for model in (Roofline(H200), refined)
        )
        assert corrected < 0.9 * bare, "so few shapes are held back by smoothing"
    path = tmp_path / "kernels.toml"
    calls = [product_calls(table) for table in tables]
    path.write_text(kernel_profile(calls, H200.name))
    assert "Written by `simperf calibrate kernels`" in path.read_text()
    with pytest.raises(InputError, match="no table of kernels of this GPU"):
        kernel_profile(calls, "l4")
    first = np.cumsum(calls[0].fitted) <= 9
    few = replace(
        calls[0], ops=calls[0].ops[: first.sum()], measured=calls[0].measured[first], fitted=calls[0].fitted[first]
    )
    with pytest.raises(InputError, match="too few shapes to fit factors to"):
        kernel_profile([few], few.part.name)


def test_a_table_that_the_constants_made_is_graded_as_met(tables):
    (large, small) = [one for one in product_grades(tables, gpus=[H100.name]) if one.layer == "bfloat16"]
    assert (large.large, small.large) == (True, False)
    assert max(large.catalogue, small.catalogue) < 1e-6
    assert large.left_out == pytest.approx(0.1, abs=0.05), "H200's times were made longer, and H100 takes its constants"
    assert small.constant > small.roofline


@pytest.mark.parametrize("profile", ["", "kernels-h100-sxm5-80gb"])
def test_what_is_graded_is_what_a_run_plays(profile, tmp_path):
    op = layer_kernels("bfloat16", 512, 1024, 2048, part=H100)[-1]
    path = tmp_path / "loop.toml"
    path.write_text(LOOP)
    result = simperf.run(path, profile=profile or None)
    model = Roofline(H100)
    if profile:
        model = FittedRoofline(H100, Catalog.load().part("profile", profile).kernels())
    (kernel,) = [span for span in result.spans if span.name == "matmul"]
    assert kernel.end - kernel.start == pytest.approx(model.cost(op).time)


def _write(home, kind, header, lines, **constant):
    """A table of one kind, and its entry in the index."""
    (home / f"h100_{kind}.csv.gz").write_bytes(gzip.compress("\n".join([header, *lines]).encode()))
    constant["device"] = "NVIDIA H100 80GB HBM3"
    return {"file": f"h100_{kind}.csv.gz", "columns": header.split(","), "constant": constant}


@pytest.fixture(scope="module")
def other_kernels(tmp_path_factory):
    """Tables of attention and experts on an H100 that take so many times as long as the catalogue's constants give."""
    home = tmp_path_factory.mktemp("others") / "llm" / "kernels"
    home.mkdir(parents=True)
    model, names = Roofline(H100), "batch_size,isl,num_heads,num_key_value_heads,latency"
    prefill = []
    for batch, queries, heads, kv in itertools.product((1, 2, 8), (1, 64, 512, 1024, 2048, 8192), (4, 16, 32), (1, 4)):
        op = attention(
            batch, heads, queries=queries, head_dim=128, kv_heads=kv, causal=True, dtype="bf16", library="tensorrt-llm"
        )
        time = model.cost(timing_loop(op, 1)).time * (1.5 if queries > 700 else 1.1)
        prefill += [f"{batch},{queries},{heads},{kv},{time * 1e3!r}"] * 3
    same = {"attn_dtype": "bfloat16", "kv_cache_dtype": "bfloat16", "head_dim": 128, "window_size": 0}
    header = "num_tokens,inter_size,num_experts,latency"
    experts = []
    for tokens, width, count in itertools.product((1, 16, 64, 256, 1024, 4096, 16384), (512, 1024, 4096), (8, 64)):
        op = moe(tokens, 2048, intermediate=width, experts=count, top_k=2, dtype="bf16")
        time = model.cost(replace(op, reuse=op.nbytes)).time * 1.4
        experts += [f"{tokens},{width},{count},{time * 1e3!r}"] * 5
    layer = {"hidden_size": 2048, "topk": 2, "moe_tp_size": 1, "moe_ep_size": 1, "distribution": "balanced"}
    layer |= {"moe_dtype": "bfloat16", "kernel_source": "made"}
    entries = [
        _write(home, "attention_prefill", names, prefill, **same),
        _write(home, "moe", header, experts, **layer),
    ]
    (home / "index.json").write_text(json.dumps({"source": "made", "tables": entries}))
    return home.parents[1]


@pytest.mark.parametrize("calls", [attention_calls, expert_calls])
def test_attention_and_experts_are_corrected_as_products_are(calls, other_kernels):
    (table,) = calls(other_kernels)
    bare, refined = (
        np.median(np.abs(table.times(model) / table.measured - 1)[~table.fitted])
        for model in (Roofline(H100), profile_model([table]))
    )
    assert bare > 0.25
    assert refined < 0.3 * bare
    assert not any(op.attention is not None and op.attention.queries == 1 for (op,) in table.ops), "one query decodes"


def test_grades_of_attention_and_experts_are_a_section_of_the_page(other_kernels):
    attended, experts = kernel_grades(measured_kernels(other_kernels))
    assert attended.catalogue > 0.25
    assert attended.profile < 0.1
    assert experts.catalogue == pytest.approx(1 - 1 / 1.4, abs=0.01)
    page = kernels_markdown([attended, experts])
    assert f"| h100-sxm5-80gb | experts (bf16), balanced | {experts.graded} | 28.6 % (29) |" in page


def test_a_profile_of_attention_is_for_its_library_alone(other_kernels, tmp_path):
    path = tmp_path / "kernels.toml"
    path.write_text(kernel_profile(list(kernel_calls(other_kernels)), H100.name))
    op = {"op": "attention", "batch": 2, "heads": 16, "queries": 2048, "head_dim": 128, "causal": True, "dtype": "bf16"}

    def time(library, profile):
        ops = [{**op, "library": library}] if library else [op]
        data = {"machine": {"use": "dgx-h100"}, "program": {"use": "operations", "ops": ops}}
        return simperf.run(simperf.make_scenario(data), profile=path if profile else None, unused="tell").time

    assert time("tensorrt-llm", True) > 1.3 * time("tensorrt-llm", False)
    assert time("", True) == time("", False)
    with pytest.raises(InputError, match="the profile changes nothing in this run"):
        data = {"machine": {"use": "dgx-h100"}, "program": {"use": "operations", "ops": [op]}}
        simperf.run(simperf.make_scenario(data), profile=path)
