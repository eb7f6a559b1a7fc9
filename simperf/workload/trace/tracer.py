"""Tracing a model: forward, loss, backward and update, at three batches."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from simperf.errors import InputError, Problem, SimperfError
from simperf.workload.model import TracedModel
from simperf.workload.trace.fit import fit
from simperf.workload.trace.loss import find_loss
from simperf.workload.trace.recorder import DataDependenceError, Recorded, TraceRecorder, recording
from simperf.workload.trace.target import blame, parse_input, require_torch
from simperf.workload.trace.update import trace_optimizer
from simperf.workload.traced import InputShape, ParameterTensor

__all__ = ["trace_model"]

_MEND = (
    "a step whose operations depend on shapes alone; replace the branch by torch.where, "
    "or take it out of the traced function: a trace has no data to decide by"
)


def trace_model(
    target: Any,
    inputs: Sequence[str] | str,
    *,
    loss: str | Callable[[Any], Any] = "auto",
    optimizer: str = "momentum",
    name: str = "",
    title: str = "",
    source: str = "",
    sample: str = "sample",
) -> TracedModel:
    """Record one training step of a model of torch.

    Parameters
    ----------
    target : module, class of module, or callable
        An `nn.Module`, a function without parameters that makes one, or a function of tensors.
    inputs : str or sequence of str
        Shapes with the batch in front, as in ``"32x3x224x224"`` or ``"8x1024:int64"``.
    loss : str or callable
        A key of `simperf.workload.trace.loss.LOSSES`, or a function from what the model returns to a scalar.
    optimizer : str
        A key of `simperf.workload.optimizers.OPTIMIZERS`.
    name, title, source, sample : str
        Words for the file.

    Raises
    ------
    InputError
        Shapes that do not go together, a model that fails or whose operations depend on data, or
        one that does not scale with the batch.
    SimperfError
        Torch is not installed.

    Examples
    --------
    >>> from torch import nn                                            # doctest: +SKIP
    >>> model = trace_model(lambda: nn.Linear(4, 2), "8x4")             # doctest: +SKIP
    >>> model.parameter_count                                           # doctest: +SKIP
    10
    """
    torch = require_torch()
    parsed = [parse_input(text) for text in ([inputs] if isinstance(inputs, str) else inputs)]
    if not parsed:
        raise InputError(Problem("no input is given", key="--input", expected="32x3x224x224"))
    if len({batch for batch, _ in parsed}) > 1:
        sizes = ", ".join(str(batch) for batch, _ in parsed)
        problem = Problem(
            "the first size of every input is the batch, and there is one batch",
            key="--input",
            expected="one batch for all inputs",
        )
        raise InputError(
            [problem, Problem("batches differ", key="--input", value=sizes, expected="one batch for all inputs")]
        )
    objective = find_loss(loss) if isinstance(loss, str) else loss
    update = trace_optimizer(optimizer)
    first = parsed[0][0]
    first = max(first, 2)  # one sample is a special case to many a program
    batches = (2, 3, 5) if first == 2 else (first, 2 * first, 3 * first)
    shapes = [shape for _, shape in parsed]
    module, function = _prepare(target, len(shapes))
    records = [_record(module, function, shapes, batch=batch, objective=objective, first=first) for batch in batches]
    storages, tensors, ops, gradients = fit(batches, records)
    base = records[0]
    number = {s.name: i for i, s in enumerate(storages) if s.role == "parameter"}
    named = dict(module.named_parameters()) if module is not None else {}
    return TracedModel(
        name=name or getattr(target, "__name__", type(target).__name__).lower().replace("_", "-"),
        title=title,
        source=source,
        sample=sample,
        inputs=tuple(shapes),
        parameters=tuple(ParameterTensor(key, tuple(weight.shape), number[key]) for key, weight in named.items()),
        storages=storages,
        tensors=tensors,
        ops=ops,
        forward=base.forward,
        gradients=gradients,
        optimizer=update,
        traced={"torch": str(torch.__version__), "batches": ", ".join(map(str, batches))},
        notes=tuple(_notes(base, named, gradients)),
    )


def _notes(record: Recorded, named: dict[str, Any], gradients: Sequence[Any]) -> list[str]:
    notes = list(record.notes)
    if record.unknown:
        notes.append(f"counted as elementwise, 1 FLOP a result: {', '.join(record.unknown)}")
    have = {order.parameter for order in gradients}
    without = [key for i, (key, weight) in enumerate(named.items()) if weight.requires_grad and i not in have]
    if without:
        notes.append(f"parameters that get no gradient: {', '.join(without)}")
    return notes


def _prepare(target: Any, count: int) -> tuple[Any, Callable[..., Any]]:
    """The module on the meta device (None if there is none), and what to call with the inputs."""
    import torch
    from torch import nn

    try:
        if isinstance(target, nn.Module):
            module = target
        elif isinstance(target, type) and issubclass(target, nn.Module):
            with torch.device("meta"):
                module = target()
        elif callable(target):
            if _required(target) >= count > 0:
                return None, target
            with torch.device("meta"):
                module = target()
            if not isinstance(module, nn.Module):
                raise InputError(
                    Problem(
                        f"the function made {type(module).__name__}",
                        expected="an nn.Module; or a function that takes as many tensors as there are inputs",
                    )
                )
        else:
            raise InputError(Problem(f"{type(target).__name__} cannot be traced", expected="an nn.Module or function"))
    except SimperfError:
        raise
    except Exception as error:
        raise InputError(blame(error, "while the model was made")) from None
    memo: dict[int, Any] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.device.type != "meta":
            moved = tensor.detach().to("meta")
            memo[id(tensor)] = nn.Parameter(moved, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else moved
    module = copy.deepcopy(module, memo) if memo else module
    return module.train(), module


def _required(function: Callable[..., Any]) -> int:
    """How many arguments a function must get."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _record(
    module: Any,
    function: Callable[..., Any],
    shapes: Sequence[InputShape],
    *,
    batch: int,
    objective: Callable[[Any], Any],
    first: int,
) -> Recorded:
    """One step at one batch."""
    import torch

    recorder = TraceRecorder()
    data = [torch.empty((batch, *s.shape), dtype=getattr(torch, s.dtype), device="meta") for s in shapes]
    for i, tensor in enumerate(data):
        recorder.storage(tensor, role="input", name=f"input{i}")
    weights = list(module.named_parameters()) if module is not None else []
    for key, weight in weights:
        recorder.storage(weight, role="parameter", name=key)
        weight.grad = None
    for key, buffer in module.named_buffers() if module is not None else ():
        recorder.storage(buffer, role="buffer", name=key)

    def ready(index: int) -> Callable[[Any], None]:
        return lambda weight: recorder.gradient(index, weight.grad)

    hooks = [
        weight.register_post_accumulate_grad_hook(ready(i))
        for i, (_, weight) in enumerate(weights)
        if weight.requires_grad
    ]
    phase = "in the forward pass"
    try:
        with recording(recorder, module):
            output = function(*data)
            phase = "in the loss"
            cost = objective(output)
            recorder.out.forward = len(recorder.out.ops)
            phase = "in the backward pass"
            if cost.requires_grad:
                cost.backward()
    except SimperfError:
        raise
    except Exception as error:
        raise InputError(_explain(error, phase, recorder, shapes, batch=batch, first=first)) from None
    finally:
        for hook in hooks:
            hook.remove()
        record = recorder.finish()
        for _, weight in weights:
            weight.grad = None
    return record


def _explain(
    error: Exception, phase: str, recorder: TraceRecorder, shapes: Sequence[InputShape], *, batch: int, first: int
) -> Problem:
    where = f"module {recorder.failed!r}" if recorder.failed else ""
    text = str(error)
    if isinstance(error, DataDependenceError) or ("meta tensor" in text and ("item" in text or "no data" in text)):
        problem = blame(error, phase, where=where)
        message = "the program asks for the value of a tensor, and what it does next would depend on data"
        return Problem(
            message + (f" (in {where})" if where else ""),
            file=problem.file,
            line=problem.line,
            value=problem.value,
            expected=_MEND,
        )
    given = ", ".join("x".join(map(str, (batch, *shape))) + f":{dtype}" for shape, dtype in shapes)
    expected = "" if batch == first else f"a model that takes any batch: it runs at batch {first}, but not at {batch}"
    return blame(error, f"{phase}, with inputs {given}", where=where, expected=expected)
