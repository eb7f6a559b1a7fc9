"""A graph of operations: program order, and the tensors that tie it together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from simperf.errors import InputError, Problem, nearest
from simperf.workload.op import Op

__all__ = ["LongestChain", "OpGraph"]


@dataclass(frozen=True, slots=True)
class LongestChain:
    """The longest chain of dependent operations.

    Parameters
    ----------
    length : float
        sum of its operations' times [s]
    ops : tuple of str
        Its operations, first to last.
    """

    length: float
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpGraph:
    """Operations in program order, linked by the tensors that they read and make.

    Parameters
    ----------
    ops : tuple of Op
        In an order in which they can run: producers before consumers.
    inputs : tuple of str
        Tensors that are there before the program starts (data, weights).
    layers : int
        Layers of the program that make the operations, containers included: each is a call in Python where operations
        are launched one by one. 0 where operations are called by themselves.

    Raises
    ------
    InputError
        A name used twice, a tensor made twice, an input that nobody makes, a cycle, or a
        tensor that is read before it is made; all at once.

    Examples
    --------
    >>> from simperf.workload.builders import product_plus_two
    >>> graph = product_plus_two(1000)
    >>> [op.name for op in graph.ops], graph.edges
    (['xy', 'z'], ((0, 1),))
    """

    ops: tuple[Op, ...]
    inputs: tuple[str, ...] = ()
    layers: int = 0

    def __init__(self, ops: Iterable[Op], inputs: Iterable[str] = (), layers: int = 0) -> None:
        object.__setattr__(self, "ops", tuple(ops))
        object.__setattr__(self, "inputs", tuple(inputs))
        object.__setattr__(self, "layers", layers)
        problems = _problems(self.ops, self.inputs)
        if problems:
            raise InputError(problems)

    @property
    def producers(self) -> dict[str, int]:
        """Index of the operation that makes each tensor."""
        return {tensor: i for i, op in enumerate(self.ops) for tensor in op.outputs}

    @property
    def consumers(self) -> dict[str, tuple[int, ...]]:
        """Indices of the operations that read each tensor that is read."""
        found: dict[str, list[int]] = {}
        for i, op in enumerate(self.ops):
            for tensor in dict.fromkeys(op.inputs):
                found.setdefault(tensor, []).append(i)
        return {tensor: tuple(readers) for tensor, readers in found.items()}

    @property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each operation, the operations that it waits for."""
        made = self.producers
        return tuple(tuple(sorted({made[t] for t in op.inputs if t in made})) for op in self.ops)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Dependencies as pairs (producer, consumer) of indices, in program order."""
        return tuple((before, i) for i, found in enumerate(self.predecessors) for before in found)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Tensors that are made and that no operation reads: what the program is for."""
        read = self.consumers
        return tuple(tensor for op in self.ops for tensor in op.outputs if tensor not in read)

    @property
    def flops(self) -> float:
        """Work of all operations [FLOP]."""
        return sum(op.flops for op in self.ops)

    @property
    def nbytes(self) -> float:
        """Traffic of all operations to device memory [B]."""
        return sum(op.nbytes for op in self.ops)

    def critical_path(self, times: Mapping[str, float] | Sequence[float]) -> LongestChain:
        """Longest chain of dependent operations: no machine finishes sooner.

        Parameters
        ----------
        times : mapping of name to float, or sequence in program order
            time of each operation alone [s]

        Raises
        ------
        InputError
            Times are missing.
        """
        values = self._times(times)
        length: list[float] = []
        before: list[int | None] = []
        for i, found in enumerate(self.predecessors):
            last = max(found, key=lambda j: length[j], default=None)
            before.append(last)
            length.append(values[i] + (0.0 if last is None else length[last]))
        if not length:
            return LongestChain(0.0, ())
        at: int | None = max(range(len(length)), key=lambda j: length[j])
        total, names = length[at] if at is not None else 0.0, list[str]()
        while at is not None:
            names.append(self.ops[at].name)
            at = before[at]
        return LongestChain(total, tuple(reversed(names)))

    def _times(self, times: Mapping[str, float] | Sequence[float]) -> list[float]:
        if isinstance(times, Mapping):
            missing = [op.name for op in self.ops if op.name not in times]
            if missing:
                raise InputError(
                    [
                        Problem("no time is given for this operation", key=name, expected="a time for each operation")
                        for name in missing
                    ]
                )
            return [times[op.name] for op in self.ops]
        if len(times) != len(self.ops):
            raise InputError(
                Problem(
                    f"{len(times)} times are given for {len(self.ops)} operations",
                    key="times",
                    expected="a time for each operation",
                )
            )
        return list(times)


def _problems(ops: tuple[Op, ...], inputs: tuple[str, ...]) -> list[Problem]:
    problems: list[Problem] = []
    named: dict[str, int] = {}
    made: dict[str, int] = {}
    for i, op in enumerate(ops):
        if named.setdefault(op.name, i) != i:
            problems.append(
                Problem("two operations have this name", key=op.name, expected="a name of its own for each")
            )
        for tensor in op.outputs:
            if tensor in inputs:
                problems.append(
                    Problem(
                        f"makes {tensor!r}, which is an input of the program",
                        key=op.name,
                        expected="another name for the tensor",
                    )
                )
            elif made.setdefault(tensor, i) != i:
                problems.append(
                    Problem(
                        f"makes {tensor!r}, which {ops[made[tensor]].name!r} makes too",
                        key=op.name,
                        expected="a name of its own for each tensor",
                    )
                )
    known = [*inputs, *made]
    given = set(inputs)
    for op in ops:
        for tensor in dict.fromkeys(op.inputs):
            if tensor not in given and tensor not in made:
                message = f"reads {tensor!r}, which nobody makes and which is no input{nearest(tensor, known)}"
                problems.append(Problem(message, key=op.name))
    loop = _cycle(ops, made)
    if loop:
        chain = " -> ".join(ops[i].name for i in loop)
        problems.append(
            Problem(
                f"operations wait for each other in a cycle: {chain}",
                key=ops[loop[0]].name,
                expected="inputs that come before",
            )
        )
        return problems
    for i, op in enumerate(ops):
        for tensor in dict.fromkeys(op.inputs):
            if made.get(tensor, -1) > i:
                later = ops[made[tensor]].name
                problems.append(
                    Problem(
                        f"reads {tensor!r} before {later!r} makes it: move it down",
                        key=op.name,
                        expected="an order in which tensors are made before they are read",
                    )
                )
    return problems


def _cycle(ops: tuple[Op, ...], made: Mapping[str, int]) -> list[int]:
    """One cycle, its first operation repeated at the end; empty if there is none."""
    after: list[list[int]] = [[] for _ in ops]
    for i, op in enumerate(ops):
        for tensor in dict.fromkeys(op.inputs):
            if tensor in made:
                after[made[tensor]].append(i)
    state = [0] * len(ops)  # 0 not seen, 1 on the path, 2 done
    for start in range(len(ops)):
        if state[start]:
            continue
        path, work = [start], [iter(after[start])]
        state[start] = 1
        while work:
            step = next(work[-1], None)
            if step is None:
                work.pop()
                state[path.pop()] = 2
            elif state[step] == 1:
                return [*path[path.index(step) :], step]
            elif state[step] == 0:
                state[step] = 1
                path.append(step)
                work.append(iter(after[step]))
    return []
