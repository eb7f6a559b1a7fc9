"""Three recordings at three batches become one model in which every amount is affine in the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from simperf.errors import InputError, Problem
from simperf.workload.trace.recorder import Recorded, RecordedOp
from simperf.workload.traced import NEVER, Affine, GradientOrder, Operand, Storage, TracedOp

__all__ = ["Fitted", "fit"]

Fitted = tuple[tuple[Storage, ...], tuple[int, ...], tuple[TracedOp, ...], tuple[GradientOrder, ...]]


def fit(batches: Sequence[int], records: Sequence[Recorded]) -> Fitted:
    """Find constant and slope of every amount from the first two records; the others must agree exactly.

    Raises
    ------
    InputError
        The program does other operations at another batch, or an amount that is not affine in it.
    """
    _same(batches, records)
    problems: list[Problem] = []

    def line(values: Sequence[int], what: Callable[[], str]) -> Affine:
        slope = Fraction(values[1] - values[0], batches[1] - batches[0])
        constant = values[0] - slope * batches[0]
        for batch, value in zip(batches[2:], values[2:], strict=True):
            if constant + slope * batch != value:
                read = ", ".join(f"{v} at batch {b}" for b, v in zip(batches, values, strict=True))
                message = "does not grow evenly with the batch, so it cannot be put to another batch"
                problems.append(Problem(message, key=what(), value=read))
                break
        return Affine(_number(constant), _number(slope))

    ops = [_op(rows, line) for rows in zip(*(record.ops for record in records), strict=True)]
    if problems:  # the operations say where; their tensors would say the same again
        raise InputError(problems[:3])
    storages = []
    for i, rows in enumerate(zip(*(record.storages for record in records), strict=True)):
        size = line([row.elements for row in rows], lambda i=i: f"tensor {i}")  # type: ignore[misc]
        first = rows[0]
        dies = NEVER if first.role == "input" else first.dies
        storages.append(Storage(size, first.width, first.role, first.born, dies, first.name))
    if problems:
        raise InputError(problems[:3])
    base = records[0]
    return tuple(storages), tuple(base.tensors), tuple(ops), tuple(GradientOrder(*row) for row in base.gradients)


def _op(rows: Sequence[RecordedOp], line: Callable[[Sequence[int], Callable[[], str]], Affine]) -> TracedOp:
    first = rows[0]

    def operands(side: str) -> tuple[Operand, ...]:
        lists = [getattr(row, side) for row in rows]
        return tuple(
            Operand(same[0][0], line([item[1] for item in same], lambda: f"{first.name}: elements"), same[0][2])
            for same in zip(*lists, strict=True)
        )

    sizes = zip(*(row.gemm for row in rows), strict=True)
    return TracedOp(
        name=first.name,
        kind=first.kind,
        family=first.family,
        flops=line([row.flops for row in rows], lambda: f"{first.name}: arithmetic"),
        reads=operands("reads"),
        writes=operands("writes"),
        gemm=tuple(line(size, lambda: f"{first.name}: size of the product") for size in sizes),
    )


def _number(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)


def _same(batches: Sequence[int], records: Sequence[Recorded]) -> None:
    """Refuse a program that is another one at another batch."""
    base = records[0]
    for batch, record in zip(batches[1:], records[1:], strict=True):
        for one, other in zip(base.ops, record.ops, strict=False):
            if _wiring(one) != _wiring(other):
                raise InputError(
                    Problem(
                        f"the model does other operations at batch {batch} than at batch {batches[0]}",
                        key=one.name,
                        value=f"{one.kind} at {batches[0]}, {other.kind} at {batch}",
                        expected="operations that do not depend on the batch; a fixed batch cannot be traced",
                    )
                )
        shapes = [
            (len(r.ops), r.tensors, r.gradients, [(s.width, s.role, s.born, s.dies) for s in r.storages])
            for r in (base, record)
        ]
        if shapes[0] != shapes[1]:
            raise InputError(
                Problem(
                    f"the model does other operations at batch {batch} than at batch {batches[0]}",
                    value=f"{len(record.ops)} operations against {len(base.ops)}",
                    expected="a model whose operations are those of every batch",
                )
            )


def _wiring(op: RecordedOp) -> tuple[object, ...]:
    ends = tuple(item[0] for item in op.reads), tuple(item[0] for item in op.writes)
    return (op.name, op.kind, *ends, len(op.gemm))
