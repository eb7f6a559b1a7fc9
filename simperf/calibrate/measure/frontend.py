"""Time of the host for one call, whatever its size (t1): tiny tensors, with and without autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.task import Family, point
from simperf.calibrate.measure.update import trained_by

__all__ = ["family"]

#: operations in the chain whose forward and backward pass is timed
CHAIN = 50


def _calls(bench: Bench) -> dict[str, Callable[[], Any]]:
    torch = bench.torch
    new, functional = bench.new("fp32"), torch.nn.functional
    x, y, weight, bias = new(2, 8), new(2, 8), new(8, 8), new(8)
    image, filters, channels = new(1, 2, 4, 4), new(2, 2, 3, 3), new(2)
    q, token = new(1, 1, 4, 8), new(2, high=8)
    mean, variance, target = new(2), new(2), new(2, high=8)
    return {
        "add": lambda: x + y,
        "add_": lambda: x.add_(y, alpha=1e-9),
        "mul": lambda: x * y,
        "relu": lambda: torch.relu(x),
        "gelu": lambda: functional.gelu(x),
        "clone": x.clone,
        "view": lambda: x.view(8, 2),
        "transpose": x.t,
        "empty": lambda: torch.empty(2, 8, device=x.device),
        "zeros": lambda: torch.zeros(2, 8, device=x.device),
        "sum": x.sum,
        "mm": lambda: torch.mm(x, weight),
        "linear": lambda: functional.linear(x, weight, bias),
        "softmax": lambda: torch.softmax(x, -1),
        "layernorm": lambda: functional.layer_norm(x, (8,), bias, bias),
        "batchnorm": lambda: functional.batch_norm(image, mean, variance, channels, channels, True),
        "conv2d": lambda: functional.conv2d(image, filters, None, 1, 1),
        "max_pool2d": lambda: functional.max_pool2d(image, 2),
        "dropout": lambda: functional.dropout(x, 0.1),
        "attention": lambda: functional.scaled_dot_product_attention(q, q, q),
        "embedding": lambda: functional.embedding(token, weight),
        "cross_entropy": lambda: functional.cross_entropy(x, target),
        "foreach_add": lambda: torch._foreach_add_([x], [y], alpha=1e-9),
    }


def _chain(bench: Bench, module: bool, back: bool) -> Callable[[], Sequence[float]]:
    """Readings an operation of a chain that autograd records, or of its backward pass."""
    torch = bench.torch

    def take() -> Sequence[float]:
        x = bench.new("fp32")(2, 8, grad=True)
        layers = torch.nn.Sequential(*(torch.nn.ReLU() for _ in range(CHAIN)))

        def forward() -> Any:
            if module:
                return layers(x)
            y = x
            for _ in range(CHAIN):
                y = torch.relu(y)
            return y

        if not back:
            return [each / CHAIN for each in bench.host(forward)]
        y, grad = forward(), bench.new("fp32")(2, 8)
        return [each / CHAIN for each in bench.host(lambda: torch.autograd.grad(y, x, grad, retain_graph=True))]

    return take


def _optimizer(bench: Bench, name: str, count: int) -> Callable[[], Sequence[float]]:
    """Readings of one update of so many tiny parameters."""

    def take() -> Sequence[float]:
        weights = [bench.new("fp32")(8, grad=True) for _ in range(count)]
        for weight in weights:
            weight.grad = bench.new("fp32")(8)
        optimizer = trained_by(name, weights)
        optimizer.step()
        return bench.host(optimizer.step)

    return take


def family(bench: Bench) -> Family:
    """Each operation type on tiny tensors; then chains with autograd."""
    calls = _calls(bench)

    def at(**more: Value) -> dict[str, Value]:
        return {"device": bench.kind, "threads": bench.threads, **more}

    def plain(call: Callable[[], Any]) -> Callable[[], Sequence[float]]:
        def take() -> Sequence[float]:
            with bench.torch.no_grad():
                return bench.host(call)

        return take

    few = ("add", "relu", "view", "linear", "conv2d", "layernorm", "foreach_add")
    for name, call in calls.items():
        if not bench.quick or name in few:
            yield point(f"frontend/{name}", at(**{"pass": "plain"}), plain(call))
    yield point("frontend/relu", at(**{"pass": "forward"}), _chain(bench, module=False, back=False))
    yield point("frontend/relu", at(**{"pass": "backward"}), _chain(bench, module=False, back=True))
    for name in ("sgd", "momentum-decay", "adamw"):
        for count in (3, 10, 30, 100):
            take = _optimizer(bench, name, count)
            yield point("frontend/optimizer", at(**{"pass": "plain", "optimizer": name, "parameters": count}), take)
    yield point("frontend/module", at(**{"pass": "forward"}), _chain(bench, module=True, back=False))
