"""The set ``training`` with real torch on the CPU, and on a GPU that is played; skipped without torch."""

import contextlib
import os
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="measuring runs torch, which is not installed")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from simperf.calibrate.dataset import Dataset, Measurement  # noqa: E402
from simperf.calibrate.measure.bench import LEAST_UNCACHED, Bench  # noqa: E402
from simperf.calibrate.measure.clock import Care  # noqa: E402
from simperf.calibrate.measure.conditions import op_of  # noqa: E402
from simperf.calibrate.measure.session import MeasuringSession  # noqa: E402
from simperf.calibrate.measure.task import Task  # noqa: E402
from simperf.calibrate.measure.training import (  # noqa: E402
    FAMILIES,
    attention,
    elements,
    layers,
    points,
    products,
    training_tasks,
)
from simperf.errors import InputError  # noqa: E402
from tests.calibrate.fake_cuda import PART, fake_cuda  # noqa: E402
from tests.calibrate.small_training import small_shapes  # noqa: E402

HASTY = Care(budget=1e-3, block=1e-5, least=2, most=2, few=2)
CAPABLE = {"sm": (9, 0)}


@pytest.fixture(scope="module")
def bench():
    return Bench(care=HASTY, low=-1.0)


@pytest.fixture(scope="module")
def listed(bench):
    return training_tasks(bench)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is played on the CPU, with shapes that a test has time for."""
    given = {
        "empty_cache": lambda: None,
        "get_device_properties": lambda device: PART,
        "get_device_capability": lambda device: CAPABLE["sm"],
    }
    with fake_cuda(monkeypatch, devices=1, **given):
        yield Bench("cuda:0", care=HASTY, low=-1.0)


@pytest.fixture
def small(monkeypatch):
    """Shapes that a test has time for, on the GPU that is played."""
    small_shapes(monkeypatch)


def tasks_of(listed, family=""):
    return [task for name, task in listed if isinstance(task, Task) and family in ("", name)]


def points_of(listed, family=""):
    return [(series, at) for task in tasks_of(listed, family) for series, at in task.points]


# what is listed -------------------------------------------------------------------------


def test_every_point_has_a_key_of_its_own_an_estimate_and_an_operation(listed):
    keys = [key for task in tasks_of(listed) for key in task.keys]
    assert len(keys) == len(set(keys)) > 300
    assert all(task.seconds > 0 for task in tasks_of(listed))
    for series, at in points_of(listed):
        if series.startswith("op/"):
            assert op_of(Measurement(series, at, (1.0,))).family == series.removeprefix("op/")


def test_a_beginning_has_something_of_every_family_and_of_every_layout(listed):
    first = listed[:40]
    assert {name for name, task in first if isinstance(task, Task)} == set(FAMILIES) - {"sustained"}
    assert {at.get("layout") for _, at in points_of(first, "products")} == {"nt", "nn", "tn"}
    assert {at["pass"] for _, at in points_of(first, "attention")} == {"forward", "backward"}


def test_shapes_of_a_gpu_are_those_of_transformers(gpu):
    shapes = products.layer_shapes(gpu)
    assert len(shapes) > 200
    assert {tokens for tokens, *_ in shapes} == {1024, 2048, 4096, 8192, 16384}
    assert min(shape[1] for shape in shapes) == 768
    assert max(shape[1] for shape in shapes) >= 16384
    for count in (12, 40):  # rounds
        assert {tokens for tokens, *_ in shapes[:count]} == {1024, 2048, 4096, 8192, 16384}
        assert max(shape[1] for shape in shapes[:count]) >= 8 * min(shape[1] for shape in shapes[:count])


def test_families_of_the_other_set_are_refused():
    with pytest.raises(InputError, match="did you mean 'products'"):
        training_tasks(None, ["product"])


# layouts and caches ---------------------------------------------------------------------


def test_the_factors_have_the_strides_of_a_linear_layer_forward_and_backward():
    tokens, inputs, outputs = 6, 10, 14
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function.overloadpacket.__name__ == "mm":
                seen.append([(tuple(one.shape), one.stride()) for one in args[:2]])
            return function(*args, **(kwargs or {}))

    x = torch.rand(tokens, inputs, requires_grad=True)
    weight = torch.rand(outputs, inputs, requires_grad=True)
    grad = torch.rand(tokens, outputs)
    with Watch():
        torch.nn.functional.linear(x, weight).backward(grad)
    ours = []
    for name in ("forward", "dgrad", "wgrad"):
        found = products.factors(lambda *shape: torch.empty(shape), name, tokens, inputs=inputs, outputs=outputs)
        ours.append([(tuple(one.shape), one.stride()) for one in found])
    assert len(seen) == 3
    assert sorted(ours) == sorted(seen)
    transposed = {
        name: [stride[0] == 1 for _, stride in pair] for name, pair in zip(products.PASSES, ours, strict=True)
    }
    assert transposed == {"forward": [False, True], "dgrad": [False, False], "wgrad": [True, False]}


@pytest.mark.parametrize(("cold", "many"), [(True, True), (False, False)])
def test_cold_operands_take_turns_over_more_than_twice_the_cache(bench, monkeypatch, cold, many):
    made, used = [], []

    def maker(new):
        x = new(1000, 1000)
        if x.device.type == "meta":
            return lambda: torch.relu(x)
        made.append(x)
        return lambda: (used.append(x.data_ptr()), torch.relu(x))[1]

    monkeypatch.setitem(LEAST_UNCACHED, "cpu", 40e6)
    monkeypatch.setattr(Bench, "kernel", lambda self, call: [call() or 1.0 for _ in range(12)])
    task = points.kernel_point(bench, maker, "fp32", cold=cold)
    (found,) = task.run([0])
    assert found.at["cache"] == ("cold" if cold else "warm")
    assert (len(made) > 1) == many
    if cold:
        assert len(made) * 8e6 >= 40e6  # with the results, which are kept as long
        before = len(made)
        assert used[before : 2 * before] == used[:before]
        assert len(set(used[:before])) == before


def test_results_lie_in_other_memory_until_their_turn_comes_again():
    places = []

    def make():
        found = torch.empty(1 << 16)
        places.append(found.data_ptr())
        return found

    call = points.rotating([make] * 4)
    for _ in range(4):
        call()
    assert len(set(places)) == 4


def test_a_larger_cache_needs_more_operands(gpu, monkeypatch):
    assert gpu.uncached == LEAST_UNCACHED["cuda"]
    part = SimpleNamespace(L2_cache_size=200_000_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: part)
    assert gpu.uncached == pytest.approx(5e8)


# what is measured -----------------------------------------------------------------------


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"layers", "sustained"}))
def test_one_point_of_each_kind_gives_readings_on_the_cpu(bench, listed, family, monkeypatch):
    monkeypatch.setitem(LEAST_UNCACHED, "cpu", 1e6)
    chosen = {}
    for task in tasks_of(listed, family):
        series, at = task.points[0]
        work = float(at.get("flops", 0.0)) + 4 * float(at.get("nbytes_read", 0.0)) + float(at.get("elements", 0.0))
        kind = (series, *(str(at.get(name)) for name in ("kind", "call", "pass", "mode", "cache")))
        if kind not in chosen or work < chosen[kind][0]:
            chosen[kind] = (work, task)
    assert chosen
    for _, task in chosen.values():
        measured = list(task.run(range(len(task.points))))
        assert [one.key for one in measured] == list(task.keys)
        assert all(len(one.samples) >= 2 and min(one.samples) > 0 for one in measured)


def test_a_layer_is_measured_in_parts(bench, monkeypatch):
    made = layers._task(bench, (1, 16, 32, 2), "eager")
    measured = {one.at["part"]: one.median for one in made.run(range(4))}
    assert set(measured) == {"forward", "backward", "both", "whole"}
    monkeypatch.setattr(layers, "compiler_missing", lambda cuda: "no compiler")
    assert layers._task(bench, (1, 16, 32, 2), "compiled") == "layer/gpt (compiled): not measured: no compiler"


def test_the_set_runs_on_a_gpu_that_is_played_and_goes_through_the_fit(gpu, small, tmp_path):
    listed = [one for one in training_tasks(gpu) if one[0] != "layers"]
    assert {at.get("dtype") for _, at in points_of(listed, "products")} == {"bf16", "fp16", "fp32", "tf32", "fp8"}
    session = MeasuringSession(tmp_path / "m.json", machine={"gpu": "Pretended 1"}, versions={}, recover=gpu.recover)
    data = session.run(listed, tell=lambda *_: None)
    assert not [text for text in data.notes if "Error" in text]
    series = set(data.series)
    assert {"op/gemm", "op/attention", "op/optimizer", "update/adamw", "update/clip", "launch/chain"} < series
    assert {"sustained/gemm", "queue/launch", "sync/item", "graph/replay"} < series
    pytest.importorskip("scipy")
    from simperf.calibrate.fit import fit_dataset

    found = fit_dataset(data, draws=2)
    names = {one.fit.model.name for one in found.fits}
    assert {"kernel.gemm-bf16", "kernel.gemm-fp8", "kernel.optimizer-fp32", "frontend.launch"} < names
    skipped = {one.series: one.reason for one in found.skipped}
    assert skipped["update/adamw"] == skipped["launch/chain"] == "no model reads this series"
    warm = [one for one in found.skipped if one.series == "op/gemm" and "L2 cache" in one.reason]
    assert sum(len(one.keys) for one in warm) == sum(
        point.series == "op/gemm" and point.at["cache"] == "warm" for point in data
    )
    fitted = {key for one in found.fits if one.series == "op/gemm" for key in one.fit.data.keys}
    assert fitted
    assert not any('"cache": "warm"' in key for key in fitted)


# what is not there ----------------------------------------------------------------------


def test_an_older_torch_lacks_some_points_and_has_the_others(bench, monkeypatch):
    monkeypatch.delattr(torch.nn.functional, "rms_norm", raising=False)
    monkeypatch.setattr(attention, "flash_only", lambda torch: None)
    found = training_tasks(bench, ["rows", "attention", "elements"])
    notes = [text for _, text in found if isinstance(text, str)]
    assert f"op/attention: not measured: torch {torch.__version__} cannot be told to use the flash kernel" in notes
    assert len(notes) == 1
    kinds = {at.get("call") for _, at in points_of(found)}
    assert "layernorm" in kinds
    rms = next(task for task in tasks_of(found, "rows") if task.points[0][1].get("call") == "rmsnorm")
    data = MeasuringSession(os.devnull + ".json", machine={}, versions={})
    monkeypatch.setattr(data, "save", lambda: None)
    data.run([("rows", rms)], tell=lambda *_: None)
    assert "rms_norm" in next(iter(data._notes))


def test_what_cannot_be_described_is_a_note_and_costs_no_other_point(bench, monkeypatch):
    def broken(*_, **__):
        raise AttributeError("module 'torch' has no attribute 'silu'")

    monkeypatch.setattr(elements, "_task", broken)
    found = training_tasks(bench, ["elements", "updates"])
    assert "op, silu: not measured: not with torch" in " ".join(text for _, text in found if isinstance(text, str))
    assert tasks_of(found, "updates")


def test_fp8_is_said_to_be_absent_with_the_reason(gpu, monkeypatch):
    assert products.fp8_missing(gpu) == ""
    monkeypatch.setitem(CAPABLE, "sm", (8, 0))
    assert "compute capability 8.9" in products.fp8_missing(gpu)
    monkeypatch.delattr(torch, "_scaled_mm")
    assert "has no _scaled_mm" in products.fp8_missing(gpu)


def test_flash_is_chosen_by_what_this_torch_has(monkeypatch):
    assert attention.flash_only(torch) is not None
    older = SimpleNamespace(nn=SimpleNamespace(), backends=SimpleNamespace(cuda=SimpleNamespace()))
    monkeypatch.setattr("importlib.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    assert attention.flash_only(older) is None
    older.backends.cuda.sdp_kernel = lambda **options: contextlib.nullcontext(options)
    with attention.flash_only(older)() as options:
        assert options == {"enable_flash": True, "enable_math": False, "enable_mem_efficient": False}


def test_a_point_without_memory_is_named_and_the_device_is_emptied(gpu, small, monkeypatch, tmp_path):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    listed = training_tasks(gpu, ["products"])[:6]
    monkeypatch.setattr(Bench, "kernel", lambda self, call: [1e-3] * 4)
    plain = products.factors

    def large(new, pass_, tokens, **sides):
        if pass_ == "dgrad" and new(1).device.type != "meta":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80 GiB")
        return plain(new, pass_, tokens, **sides)

    monkeypatch.setattr(products, "factors", large)
    kept = MeasuringSession(tmp_path / "m.json", machine={}, versions={}, recover=gpu.recover)
    data = kept.run(listed, tell=lambda *_: None)
    failed = [text for text in data.notes if "OutOfMemoryError: CUDA out of memory" in text]
    assert failed
    assert len(emptied) == len(failed)
    assert len(data) + len(failed) == len(tasks_of(listed))
    assert len(Dataset.load(tmp_path / "m.json")) == len(data)
