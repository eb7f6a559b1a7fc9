"""LSTM layers are kept whole (`simperf.workload.trace.recurrent`): work, gradients, and what is left to torch."""

import pytest

torch = pytest.importorskip("torch", reason="tracing needs torch: pip install torch")

from torch import nn  # noqa: E402

from simperf.workload.trace import trace_model  # noqa: E402
from simperf.workload.trace.recurrent import NOTE  # noqa: E402

STEPS, INPUTS, WIDTH = 7, 12, 8


class Net(nn.Module):
    """One recurrent network, of which the outputs or the last state count."""

    def __init__(self, *, last=False, **options):
        super().__init__()
        self.lstm, self.last = nn.LSTM(INPUTS, WIDTH, batch_first=True, **options), last

    def forward(self, x):
        y, (h, _) = self.lstm(x)
        return h[-1] if self.last else y


def traced(net=Net, **options):
    return trace_model(lambda: net(**options), f"4x{STEPS}x{INPUTS}", loss="mean")


def products(model):
    return {op.kind: op.flops.at(3) for op in model.ops if op.family == "gemm"}


@pytest.mark.parametrize("bias", [True, False])
def test_work_against_the_equations(bias):
    """Four gates from inputs and state at every step, and for each product two gradients (none for the data)."""
    found = products(traced(bias=bias))
    rows = 3 * STEPS
    inputs, state = 2 * rows * 4 * WIDTH * INPUTS, 2 * rows * 4 * WIDTH * WIDTH
    assert found["lstm_inputs"] == inputs + bias * 2 * rows * 4 * WIDTH
    assert found["lstm_inputs_wgrad"] == inputs
    assert found["lstm_steps_wgrad"] == state
    cells = (3 * 14 + 2 * 8 + 4) * rows * WIDTH  # sigmoids, hyperbolic tangents, the rest
    assert found["lstm_steps"] == state + cells
    assert found["lstm_steps_backward"] == state + 2 * cells
    assert "lstm_inputs_dgrad" not in found


def test_all_parameters_get_their_gradients_layer_by_layer():
    model = traced(num_layers=2, bidirectional=True, dropout=0.3)
    names = [model.parameters[order.parameter].name for order in model.gradients]
    assert sorted(names) == sorted(name for name, _ in Net(num_layers=2, bidirectional=True).named_parameters())
    assert all("l1" in name for name in names[:8])
    assert [op.kind for op in model.ops].count("lstm_steps") == 4
    assert [op.kind for op in model.ops].count("lstm_inputs_dgrad") == 2, "the second layer's, each way"
    assert [op.kind for op in model.ops].count("native_dropout") == 1
    assert NOTE in model.notes


def test_gradients_reach_the_weights_through_the_last_state_too():
    model = traced(last=True)
    assert len(model.gradients) == len(model.parameters) == 4


class Learned(Net):
    """Its first state is a parameter."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.empty(1, 1, WIDTH))

    def forward(self, x):
        h = self.first.expand(1, x.shape[0], WIDTH).contiguous()
        return self.lstm(x, (h, torch.zeros_like(h)))[0]


def test_what_cannot_be_kept_whole_is_traced_step_by_step():
    whole, steps = traced(), traced(Learned)
    assert NOTE not in steps.notes
    assert len(steps.ops) > 5 * len(whole.ops)
    assert len(steps.gradients) == len(steps.parameters) == 5
    assert NOTE not in traced(proj_size=4).notes
