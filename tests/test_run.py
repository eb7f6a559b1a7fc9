"""From a scenario to a result (simperf.run): what is gathered, and errors that are answers."""

import gc
from dataclasses import replace
from pathlib import Path

import pytest

import simperf
from simperf.errors import DeviceMemoryError, InputError, ProgramError
from simperf.hardware import Catalog
from simperf.run import run, run_variants
from simperf.scenario import load_scenario, make_scenario
from simperf.scenario.settings import CostSettings

CHAIN = {"program": {"use": "async-chain", "n": 100}}


def test_a_run_without_a_timeline_gives_the_same_time():
    scenario = make_scenario(CHAIN)
    watched, unwatched = run(scenario), run(scenario, record=False)
    assert watched.time == unwatched.time
    assert watched.spans
    assert not unwatched.spans


@pytest.mark.parametrize(("usual", "during"), [(700, 50_000), (90_000, 90_000), (0, 0)])
def test_garbage_is_looked_for_more_rarely_while_a_run_goes_on(usual, during, tmp_path):
    """Whatever becomes of the run; one who looks more rarely still, or never, is left to it."""
    (tmp_path / "own.py").write_text(
        "import gc\n\nfrom simperf import compute\n\n\ndef look(m, *, fail: bool = False):\n"
        "    m.metric('young', gc.get_threshold()[0])\n    yield compute(-1.0 if fail else 1.0)\n"
    )
    (tmp_path / "own.toml").write_text('[program]\npython = "own.py:look"\n')
    before = gc.get_threshold()
    try:
        gc.set_threshold(usual, 10, 10)
        assert run(load_scenario(tmp_path / "own.toml")).metrics["young"].value == during
        with pytest.raises(ProgramError):
            run(load_scenario(tmp_path / "own.toml", ["program.fail=true"]))
        assert gc.get_threshold() == (usual, 10, 10)
    finally:
        gc.set_threshold(*before)


def test_what_was_modelled_depends_on_what_was_used():
    chain = run(make_scenario(CHAIN))
    assert any("launch queue of 1024" in line for line in chain.modelled)
    assert not any("links" in line for line in chain.modelled)
    links = run(load_scenario("d2l/sync-160mb").variants[0])
    assert any("links shared max-min fairly" in line for line in links.modelled)
    assert any("packets" in line for line in links.not_modelled)


@pytest.mark.parametrize(("machine", "powered"), [("dgx-h100", True), ("dgx-1v", False)])
def test_clocks_and_caches_are_told_as_modelled_where_they_are(machine, powered):
    ops = [{"op": "matmul", "m": 2048, "n": 2048, "k": 2048, "dtype": "fp16"}]
    data = {"machine": {"use": machine}, "program": {"use": "operations", "ops": ops}}
    plain = run(make_scenario(data))
    told = "clocks under load but of matrix products"
    assert any(told in line for line in plain.not_modelled) == powered
    assert any("board's power" in line for line in plain.modelled) == powered
    assert any("every operand comes from" in line for line in plain.not_modelled)
    loop = make_scenario({**data, "program": {**data["program"], "copies": 4}})
    if not powered:
        with pytest.raises(
            InputError, match="copies change nothing: no operand of matmul is costed as in the L2 on gpu0"
        ):
            run(loop)
        return
    looped = run(loop)
    assert not any(told in line for line in looped.not_modelled), "a loop ends before the board slows down"
    assert not any("every operand comes from" in line for line in looped.not_modelled)
    assert any("stay in the L2" in line for line in looped.modelled)


def test_a_profile_of_kernels_by_shape_says_what_the_catalogue_accounts_for():
    ops = [{"op": "matmul", "m": 2048, "n": 2048, "k": 2048, "dtype": "bf16"}]
    data = {"machine": {"use": "dgx-h100"}, "program": {"use": "operations", "ops": ops}}
    data["calibration"] = {"use": "kernels-h100-sxm5-80gb"}
    found = run(make_scenario(data))
    assert any("clocks under load but of matrix products" in line for line in found.not_modelled)
    assert any("at the clock that the board's power sustains" in line for line in found.modelled)
    assert any("times factors fitted to tables of the profile's GPU" in line for line in found.modelled)
    looped = run(make_scenario({**data, "program": {**data["program"], "copies": 4}}))
    assert any("stay in the L2" in line for line in looped.modelled)


def test_what_makes_a_profile_doubtful_is_told_where_its_model_is_used(tmp_path):
    shipped = Catalog.load().part("profile", "kernels-h100-sxm5-80gb")
    path, line = tmp_path / "odd.toml", 'series = "gemm-fp8"\n'
    path.write_text(Path(shipped.file).read_text("utf-8").replace(line, f'{line}note = "2 factors are odd"\n'), "utf-8")
    notes = {}
    for dtype in ("bf16", "fp8"):
        ops = [{"op": "matmul", "m": 2048, "n": 2048, "k": 2048, "dtype": dtype}]
        data = {"machine": {"use": "dgx-h100"}, "program": {"use": "operations", "ops": ops}}
        notes[dtype] = run(make_scenario(data), profile=path).notes
    told = "profile odd, gemm-fp8: 2 factors are odd"
    assert told in notes["fp8"]
    assert told not in notes["bf16"]


def test_resources_operations_and_sources_come_along():
    result = run(load_scenario("d2l/fusion").variants[0])
    assert result.resources["gpu0"].utilisation(result.time) == pytest.approx(1.0)
    assert {use.name for use in result.operations} == {"cos", "cos2"}
    assert result.ceilings["gpu0"].part == "rtx-4090"
    assert "NVIDIA" in result.sources["gpu rtx-4090"]
    copies = run(load_scenario("d2l/copy-overlap").variants[3])
    assert "pytorch: copy_setup" in copies.sources
    assert "pytorch: graph_launch" not in copies.sources, "no graph was launched"


def test_a_price_comes_with_its_date_and_source():
    priced = {"machine": {"name": "p3-8xlarge"}, "program": {"use": "train", "steps": 1}}
    assert run(make_scenario(priced)).sources["machine price"] == (
        "p3-8xlarge: 12.24 USD/h (instances.vantage.sh as of 2026-01-21 (tsaol/aws-gpu at 77fcd9f), Linux, us-east-1, "
        "2026-01-21)"
    )
    free = {"machine": {"name": "p3-8xlarge"}, "program": {"use": "all-reduce"}}
    assert "machine price" not in run(make_scenario(free)).sources, "nothing was said of cost"
    assert "machine price" not in run(load_scenario("training/overlap").variants[0]).sources


def test_variants_keep_errors_as_answers():
    attempts = run_variants(load_scenario("d2l/run-ahead"))
    assert [attempt.result is None for attempt in attempts] == [False, False, False, True]
    assert isinstance(attempts[3].error, DeviceMemoryError)
    (only,) = run_variants(make_scenario(CHAIN))
    assert only.result is not None


def test_seeds_change_what_is_random_and_nothing_else():
    jitter = {"program": {"use": "async-chain", "n": 100, "jitter": 0.5}}
    one, two = (make_scenario({**jitter, "run": {"seed": seed}}) for seed in (1, 2))
    assert run(one).to_bytes() == run(one).to_bytes()
    assert run(one).time != run(two).time


def test_a_name_is_a_scenario():
    assert run("d2l/async", record=False).time == run(load_scenario("d2l/async"), record=False).time


def test_what_was_fitted_is_said_in_place_of_the_catalogue():
    program = {"machine": {"use": "desktop-1gpu"}, "program": {"use": "operations"}}
    plain = run(make_scenario(program))
    assert any("every operand comes from and goes to device memory" in line for line in plain.not_modelled)
    fitted = run(make_scenario({**program, "calibration": {"use": "cpu-epyc-zen5-2c"}}))
    assert any("constants fitted to measurements" in line for line in fitted.modelled)
    assert not any("device memory" in line for line in fitted.not_modelled), "a profile's caches are modelled"
    assert fitted.sources["profile cpu-epyc-zen5-2c"].startswith("kernels, fitted to AMD EPYC")
    assert not any(key.startswith("profile") for key in plain.sources)
    assert not any("measured on a CPU" in note for note in plain.notes)
    (part,) = {node.part.name for node in Catalog.load().machine("desktop-1gpu").nodes.values() if node.kind == "gpu"}
    assert f"operations on {part} cost what was measured on a CPU: the profile's constants hold for one" in fitted.notes


def test_a_profile_of_another_gpu_is_not_taken_and_that_is_said():
    base = make_scenario({"machine": {"use": "desktop-1gpu"}, "program": {"use": "operations"}})
    slow = CostSettings(kernels={"elementwise": {"overhead": 1.0, "rate": 1e12}}, gpu="t4")
    found = run(replace(base, cost=slow))
    assert found.time == run(base).time
    assert any("cost what the catalogue says: the profile was fitted to t4" in note for note in found.notes)


@pytest.mark.parametrize("name", ["machine", "frontend", "mode", "seed", "name"])
def test_a_parameter_that_is_called_as_an_option_of_simulate_is_refused(name):
    space = {}
    exec(f"def step(m, *, {name}: int = 3):\n    yield None", space)
    with pytest.raises(InputError) as caught:
        simperf.simulate(space["step"], **{name: 4})
    (problem,) = caught.value.problems
    assert problem.key == name
    assert problem.expected == "another name of the parameter"


def test_a_parameter_called_program_is_the_programs():
    def step(m, *, program: int = 1):
        for _ in range(program):
            yield simperf.launch(simperf.Kernel("k", time=1e-3), m.gpu())
        yield simperf.synchronize(m.gpu())

    one, four = (simperf.simulate(step, program=count).time for count in (1, 4))
    assert four > one + 2.9e-3
