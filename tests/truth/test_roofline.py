"""The catalogue's peaks and efficiencies against published kernel timings.

Efficiencies of elementwise kernels and normalizations were chosen on the even rows (0, 2, ...) of the NeuSight
tables, of fp32 products on their large rows, of fp16 and fp8 products elsewhere; held against here are the odd rows.
The present errors of all rows are the ratchet's (tests/truth/ratchet.py).
"""

import numpy as np
import pytest

from simperf.accuracy.kernel_tables import measured_ops
from simperf.accuracy.kernels import predict_roofline, roofline_errors
from simperf.cost import Roofline
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.workload import Gemm

pytestmark = pytest.mark.truth


@pytest.fixture(scope="module")
def errors(cases):
    return roofline_errors(cases.values(), Catalog.load().gpu)


def test_most_large_products_and_all_elementwise_rows_are_close(errors):
    def quantile(start, share):
        rows = [row for case, found in errors.items() if case.startswith(start) for row in found[1::2]]
        return np.quantile([abs(row.error) for row in rows], share)

    assert quantile("roof-elementwise", 0.5) < 0.01
    assert quantile("roof-elementwise", 0.9) < 0.03
    assert quantile("roof-linear-fp32", 0.5) < 0.08


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
    with pytest.raises(InputError, match="no roofline can be compared with columns"):
        predict_roofline(cases["roof-mamf-bf16"], Catalog.load().gpu("t4"))
