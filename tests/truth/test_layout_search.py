"""Published layouts stand where they should among those that are predicted."""

import numpy as np
import pytest

from tests.truth.layout_search import rank_correlation, vtrain_orders


def test_the_rank_correlation_of_orders():
    assert rank_correlation([1.0, 2.0, 3.0], [2.0, 5.0, 9.0]) == pytest.approx(1.0)
    assert rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    # ties have their mean rank: scipy.stats.spearmanr gives 0.866 for these
    assert rank_correlation([1.0, 2.0, 3.0], [1.0, 1.0, 2.0]) == pytest.approx(0.75**0.5)


def test_the_fastest_measured_layout_of_vtrain_is_among_the_fastest_predicted(truth):
    """Of 26 layouts of a model of 3.6 billion parameters on 64 GPUs, and their whole order."""
    for (_, _, gpus, _), cases, measured, predicted in vtrain_orders(truth, models=(30,)):
        if gpus == 64:
            best = int(np.argmin(measured))
            assert len(cases) == 26
            assert predicted[best] <= 1.03 * min(predicted)
            assert rank_correlation(measured, predicted) > 0.9
            return
    pytest.fail("vTrain has no such layouts")
