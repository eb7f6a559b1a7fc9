"""Operations from a file's table: what is taken, and how mistakes are told (simperf.workload.registry)."""

import pytest

from simperf.errors import InputError
from simperf.workload import OP_KINDS, Op, make_op, op_parameters


def problems(spec, **options):
    with pytest.raises(InputError) as caught:
        make_op(spec, **options)
    return {problem.key: problem for problem in caught.value.problems}


def test_the_table_of_the_contract():
    op = make_op({"op": "matmul", "m": 4000, "n": 4000, "k": 4000, "dtype": "fp32"})
    assert (op.name, op.kind, op.family, op.outputs) == ("matmul", "matmul", "gemm", ("matmul",))


def test_names_and_wiring():
    op = make_op({"op": "add", "elements": 8, "name": "z", "inputs": ["x", "y"], "outputs": ["t"]})
    assert (op.name, op.inputs, op.outputs) == ("z", ("x", "y"), ("t",))


def test_all_mistakes_at_once_with_the_right_keys():
    found = problems({"op": "matmul", "m": "4000", "n": 4000, "kk": 4000, "dtype": 32}, key="program.ops[3]")
    assert set(found) == {f"program.ops[3].{key}" for key in ("m", "kk", "k", "dtype")}
    assert found["program.ops[3].m"].expected == "a whole number"
    assert found["program.ops[3].m"].value == "'4000'"
    assert "did you mean 'k'" in found["program.ops[3].kk"].message
    assert found["program.ops[3].kk"].expected == "m, n, k, dtype, name, inputs, outputs"
    assert found["program.ops[3].k"].message == "matmul needs 'k'"


def test_mistakes_that_the_constructor_finds_keep_their_key():
    assert set(problems({"op": "matmul", "m": 0, "n": -1, "k": 1}, key="ops[0]")) == {"ops[0].m", "ops[0].n"}
    assert "unknown precision 'fp31'; did you mean" in str(
        problems({"op": "cos", "elements": 1, "dtype": "fp31"}, key="ops[0]")["ops[0]"]
    )


def test_unknown_and_missing_kind():
    assert "did you mean 'matmul'" in problems({"op": "matmull"})["op"].message
    assert "'op' is missing" in problems({"m": 1})["op"].message


@pytest.mark.parametrize("spec", [{"inputs": "x"}, {"inputs": [1]}, {"outputs": {"a": 1}}, {"name": ""}, {"name": 3}])
def test_wiring_of_the_wrong_type(spec):
    assert set(problems({"op": "cos", "elements": 1} | spec)) == set(spec)


@pytest.mark.parametrize(("key", "value"), [("scalar", 1), ("elements", True), ("elements", 2.0)])
def test_types_are_not_mixed_up(key, value):
    assert key in problems({"op": "add", "elements": 1} | {key: value})


def test_numbers_and_optional_whole_numbers():
    assert make_op({"op": "elementwise", "elements": 2, "flops_per_element": 2.5}).flops == 5
    spec = {"op": "attention", "batch": 1, "heads": 1, "queries": 2, "head_dim": 1}
    assert make_op(spec | {"keys": 8}).flops == 4 * 16
    assert problems(spec | {"keys": 1.5})["keys"].expected == "a whole number"


def test_a_key_that_a_type_had_once_is_refused_with_its_successor():
    spec = {"op": "attention", "batch": 1, "heads": 1, "queries": 2, "head_dim": 1}
    assert problems(spec | {"flash": False})["flash"].expected == 'library = "unfused" for false, no key for true'
    assert make_op(spec | {"library": "unfused"}).nbytes > make_op(spec).nbytes


def test_parameters_of_every_kind_can_be_listed_and_are_annotated():
    for kind in OP_KINDS:
        parameters = op_parameters(kind)
        assert "dtype" in parameters
        assert all(p.annotation is not p.empty and not isinstance(p.annotation, str) for p in parameters.values())
        assert OP_KINDS[kind].__doc__


def test_own_kinds_can_be_added():
    def triple(elements: int, *, dtype: str = "fp32") -> Op:
        return Op("triple", "triple", flops=3.0 * elements, dtype=dtype)

    with OP_KINDS.temporary_entries(triple=triple):
        assert make_op({"op": "triple", "elements": 2}).flops == 6


def test_amounts_may_bear_units():
    op = make_op({"op": "custom", "flops": "2 GFLOP", "nbytes": "1 MiB", "written": 24})
    assert (op.flops, op.nbytes, op.nbytes_written) == (2e9, 2**20, 24)
    assert "unit of size" in problems({"op": "custom", "flops": "2 GB", "nbytes": 0})["flops"].message


def test_every_model_of_the_zoo_has_its_source():
    from pathlib import Path

    import simperf.workload.zoo_source as sources

    folder = Path(sources.__file__).parent
    modules = {entry.function.partition(":")[0] for entry in sources.ENTRIES.values()}
    assert {"decoders", "vision"} <= modules
    for module in modules:
        assert (folder / f"{module}.py").is_file()
