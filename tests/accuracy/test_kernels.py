"""Tables of measured kernels are read right, with made-up measurements (simperf.accuracy.kernels)."""

from dataclasses import dataclass, field

import pytest

from simperf.accuracy.kernel_tables import GPUS, measured_ops
from simperf.accuracy.kernels import predict_roofline, roofline_errors
from simperf.cost import Roofline
from simperf.errors import InputError
from simperf.hardware import Catalog


@dataclass(frozen=True)
class Round:
    name: str = "round"
    peak: dict[str, float] = field(default_factory=lambda: {"fp32": 1e12, "fp16": 8e12})
    memory_bandwidth: float = 100e9
    sms: int = 10
    kernel_floor: float = 0.0
    efficiency: dict[str, float] = field(default_factory=dict)


def case(columns, *rows, gpu="T4", repo="", **workload):
    return {
        "id": "made-up",
        "kind": "roofline",
        "hardware": {"gpu": gpu},
        "workload": workload,
        "measured": {"columns": columns, "table": list(rows)},
        "source": {"repo": repo},
    }


def errors(made, **options):
    device = Round()
    return predict_roofline(made, device, model=Roofline.sharp(device), **options)


M = 10**6
TABLES = [
    # 12 MB at 100 GB/s take 0.12 ms; measured a tenth longer
    (case(["op", "B", "H", "latency_ms"], ["add", 1000, 1000, 0.132]), "add 1000x1000", 0.12e-3),
    (case(["op", "B", "H", "latency_ms"], ["tanh", 1000, 1000, 0.088]), "tanh 1000x1000", 0.08e-3),
    (case(["op", "B", "H", "latency_ms"], ["softmax", 1000, 1000, 0.088]), "softmax 1000x1000", 0.08e-3),
    # the sum runs over N; a bias adds one FLOP a result to 2 x 1000 x 2000 x 500
    (case(["B", "M", "N", "K", "latency_ms"], [1, 1000, 2000, 500, 2.20055]), "linear 1x1000x500, k=2000", 2.0005e-3),
    (case(["M", "K", "N", "latency_ms"], [1000, 1000, 1000, 0.275]), "matmul 1000x1000x1000", 0.25e-3),
    (case(["M", "Gelem_s"], [M, 25 / 1.1]), "gelu 1000000", 0.04e-3),
    (
        case(["m", "n", "k", "tflops"], [1000, 1000, 1000, 8 / 1.1], gemm_dtype="FP16"),
        "matmul 1000x1000x1000 fp16",
        0.25e-3,
    ),
]


@pytest.mark.parametrize(("made", "label", "time"), TABLES, ids=[label for _, label, _ in TABLES])
def test_each_form_of_table(made, label, time):
    (row,) = errors(made)
    assert row.label == label
    assert row.predicted == pytest.approx(time, rel=1e-9)
    assert row.error == pytest.approx(1 / 1.1 - 1, rel=1e-9)


def test_one_column_a_gpu():
    made = case(["B", "M", "N", "K", "A", "B2"], [10, 100, 100, 1000, 1.0, 2.0], op="torch.bmm fp32")
    assert [errors(made, gpu=gpu)[0].measured for gpu in ("A", "B2")] == [1e-3, 2e-3]
    assert errors(made, gpu="A")[0].predicted == pytest.approx(0.2e-3)


def test_operations_on_rows_in_elements_a_second():
    """The case says which operation its table times: softmax has no weights to read."""
    columns, row = ["M", "N", "Gelem_s"], [1000.0, 1000.0, 25.0]
    (norm,) = errors(case(columns, row, op="layernorm fp16"))
    assert norm.label == "layernorm 1000x1000"
    assert norm.measured == pytest.approx(0.04e-3)
    assert norm.predicted == pytest.approx(2 * (2 * M + 2000) / 100e9)
    (soft,) = errors(case(columns, row, op="softmax fp16"))
    assert soft.label == "softmax 1000x1000"
    assert soft.predicted == pytest.approx(2 * 2 * M / 100e9)


@pytest.mark.parametrize("op", ["", "rmsnorm fp16", "softmax / layernorm fp16"])
def test_a_table_of_elements_a_second_that_names_no_known_operation_is_refused(op):
    made = case(["M", "N", "Gelem_s"], [1000.0, 1000.0, 25.0], op=op)
    with pytest.raises(InputError, match="no roofline can be compared with columns"):
        errors(made)
    assert measured_ops(made) == []
    assert roofline_errors([made], Catalog.load().gpu) == {}


def test_the_constant_of_the_measuring_program_is_added():
    row = ["add", 1000, 1000, 0.136]
    columns = ["op", "B", "H", "latency_ms"]
    assert errors(case(columns, row, repo="sitar-lab/NeuSight"))[0].error == pytest.approx(0)
    assert errors(case(columns, row, repo="sitar-lab/NeuSight"), harness=0.0)[0].predicted == pytest.approx(0.12e-3)


def test_what_cannot_be_predicted_is_left_out_or_refused():
    known = case(["M", "Gelem_s"], [M, 1.0])
    strange = case(["gpu", "mamf"], ["T4", 1.0])
    other = case(["M", "Gelem_s"], [M, 1.0], gpu="Gaudi")
    assert list(roofline_errors([known, strange, other, known | {"kind": "nccl"}], Catalog.load().gpu)) == ["made-up"]
    with pytest.raises(InputError, match="made-up: no roofline can be compared"):
        errors(strange)


def test_every_gpu_of_the_table_is_in_the_catalog():
    assert all(Catalog.load().gpu(name).peak["fp32"] > 0 for name in GPUS.values())
