"""The catalogue's peaks and efficiencies against published kernel timings.

Efficiencies of elementwise kernels and normalizations were chosen on the even rows (0, 2, ...) of the NeuSight
tables, of fp32 products on their large rows, of fp16 and fp8 products elsewhere; held against here are the odd rows.
The limits state what is reached, failures included: a change that makes a row worse has to say so.
"""

import pytest

from simperf.analysis.truth_roofline import measured_ops, predict_roofline, roofline_errors, summarize
from simperf.cost import Roofline
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.workload import Gemm

pytestmark = pytest.mark.truth

#: case: (median, 90th percentile) of the absolute error on the rows that were not used
LIMITS = {
    "roof-elementwise-p100-pcie": (0.01, 0.04),
    "roof-elementwise-v100-pcie-32gb": (0.015, 0.03),
    "roof-elementwise-a100-pcie-40gb": (0.02, 0.03),
    "roof-elementwise-l4": (0.015, 0.02),
    "roof-linear-fp32-t4": (0.10, 0.20),
    "roof-linear-fp32-a100-pcie-40gb": (0.09, 0.14),
    "roof-linear-fp32-a100-pcie-80gb": (0.13, 0.18),
    "roof-linear-fp32-h100-sxm5-80gb": (0.05, 0.18),
    "roof-linear-fp32-p100-pcie": (0.06, 0.52),
    "roof-norm-softmax-p100-pcie": (0.08, 0.25),
    "roof-norm-softmax-v100-pcie-32gb": (0.10, 0.35),
    "roof-norm-softmax-t4": (0.25, 0.40),
    "roof-norm-softmax-a100-pcie-80gb": (0.15, 0.25),
    "roof-matmul-fp16-a100": (0.10, 0.15),
    "roof-layernorm-fp16-a100": (0.22, 0.35),
    "roof-gelu-fp16-a100": (0.08, 0.18),
    "roof-azure-a100_v4": (0.22, 0.36),
    "roof-azure-h100_v5": (0.15, 0.25),
    "roof-bmm-fp32-6gpus P100-PCIE": (0.17, 0.25),
    "roof-bmm-fp32-6gpus T4": (0.28, 0.46),
    "roof-bmm-fp32-6gpus A100-PCIE-40GB": (0.05, 0.13),
    "roof-bmm-fp32-6gpus A100-PCIE-80GB": (0.16, 0.18),
    "roof-bmm-fp32-6gpus L4": (0.16, 0.31),
    "roof-bmm-fp32-6gpus H100-SXM5-80GB": (0.09, 0.12),
}


@pytest.fixture(scope="module")
def errors(cases):
    return roofline_errors(cases.values(), Catalog.load().gpu)


def test_every_table_that_can_be_predicted_has_a_limit(errors):
    assert set(errors) == set(LIMITS)


@pytest.mark.parametrize("case", LIMITS)
def test_held_out_rows(errors, case):
    found = summarize(errors[case][1::2])
    median, p90 = LIMITS[case]
    assert found.median <= median, found
    assert found.p90 <= p90, found


def test_most_large_products_and_all_elementwise_rows_are_close(errors):
    def rows(start):
        return [row for case, found in errors.items() if case.startswith(start) for row in found[1::2]]

    assert summarize(rows("roof-elementwise")).median < 0.01
    assert summarize(rows("roof-elementwise")).p90 < 0.03
    assert summarize(rows("roof-linear-fp32")).median < 0.08


def test_the_sum_of_a_product_runs_over_the_third_number(cases):
    """The table multiplies (B, M, N) by (B, N, K): read the other way round, no GPU's tiles fit its times."""
    label, op, time = measured_ops(cases["roof-bmm-fp32-6gpus"], "P100-PCIE")[2]
    assert (label, op.gemm) == ("bmm 12x1024x1024, k=64", Gemm(12, 1024, 1024, 64))
    assert time == pytest.approx(0.253675e-3)
    layer = measured_ops(cases["roof-linear-fp32-t4"])[4][1]
    assert layer.gemm == Gemm(1, 512, 960, 30522)


def test_no_kernel_beats_the_floor_of_the_data_sheet_by_much(cases):
    """The floor holds on real data: only the clock's boost beyond the data sheet goes a little below."""
    part = Catalog.load().gpu("v100-pcie-32gb")
    ideal = predict_roofline(cases["roof-elementwise-v100-pcie-32gb"], part, harness=0.0, model=Roofline.sharp(part))
    assert all(row.error <= 0 for row in ideal)


def test_a_table_of_unknown_form_is_refused(cases):
    with pytest.raises(InputError, match="no roofline can be held"):
        predict_roofline(cases["roof-mamf-bf16"], Catalog.load().gpu("t4"))
