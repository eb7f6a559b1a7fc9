"""The process of a rank that has a part of its weights only: it gathers those of a layer before it computes it.

Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023; the order is that of
PyTorch's ``fully_shard`` (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py). Gathers and reductions of all
units are on one stream, as those of one communicator are. Forward, the process asks for a unit's weights when it comes
to the unit; as the device is behind the process, the gather begins when the weights of the unit but one before have
been copied out of their buffer. Backward, it asks for those of the unit before as soon as it has its own. Before
gradients are packed, those of the unit before have been reduced, whose buffer is free then.

Experts that are spread over ranks are gathered and reduced over the ranks that have copies of them, on a stream of
their own; those of a layer are asked for behind its other weights, and reduced before its other gradients, as modules
inside of others are.

Not modelled: copies of a rank's own part to and from buffers, which other streams make meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simperf.engine.items import Marker
from simperf.execution import record
from simperf.execution.works import Communication
from simperf.schedules import Pass
from simperf.training.pipelined.communicators import Dimension
from simperf.training.pipelined.stage import StageProcess, Steps
from simperf.training.pipelined.work import LayerBucket, WeightUnit

__all__ = ["ShardedStage"]


@dataclass(eq=False, slots=True)
class ShardedStage(StageProcess):
    """A rank of a pipeline that shares its weights with other data-parallel ranks; takes what its base takes."""

    _units: Sequence[WeightUnit] = field(init=False)
    _of: dict[tuple[int, int], int] = field(default_factory=dict, init=False)
    _whole: set[int] = field(default_factory=set, init=False)
    _coming: dict[int, list[tuple[Communication, Dimension]]] = field(default_factory=dict, init=False)
    _spread: list[Marker] = field(default_factory=list, init=False)
    _last: tuple[Communication, Dimension] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        StageProcess.__post_init__(self)
        self._units = self.work.units[self.stage]
        for number, unit in enumerate(self._units):
            self._of |= {(unit.bucket.chunk, index): number for index in unit.bucket.layers}

    def _before(self, one: Pass, index: int) -> Steps:
        """Have the weights of a layer, and ask for those of the next ones backward."""
        number = self._of.get((one.chunk, index))
        if number is None or one.kind == "W" or "dp" not in self.groups:
            return
        if number not in self._whole:
            yield from self._flush(str(one))
            if number not in self._coming:
                yield from self._ask(number, self._since(one, index))
            for weights, dimension in self._coming.pop(number):
                yield from self._hold([weights], dimension)
            yield from self._items(self._units[number].spread, "forward" if one.kind == "F" else "backward")
            self._whole.add(number)
            self._spread = [*self._spread[-self.pacing.prefetch :], (yield record(self.device, "weights are there"))]
        if one.kind == "B" and self.pacing.prefetch:
            for ahead in self._ahead(one, index):
                if ahead not in self._whole and ahead not in self._coming:
                    yield from self._flush(str(one))
                    yield from self._ask(ahead, self._spread[-1])

    def _since(self, one: Pass, index: int) -> Marker | None:
        """The event that the first gather of a layer's unit waits for; None: for the layers before."""
        if not self.pacing.prefetch or not index or not self._spread:
            return None
        return self._spread[0 if one.kind == "F" else -1]

    def _ahead(self, one: Pass, index: int) -> Sequence[int]:
        """Units that the backward pass comes to after that of a layer."""
        own = (self._of.get((one.chunk, below)) for below in reversed(range(index)))
        return [number for number in own if number is not None][: self.pacing.prefetch]

    def _ask(self, number: int, after: Marker | None) -> Steps:
        found = self._coming[number] = []
        for bucket in self._units[number].buckets:
            dimension: Dimension = bucket.dimension
            if dimension in self.groups:
                nbytes = self.work.ends[self.stage].gathered(bucket)
                work = yield from self._collective(dimension, "all-gather", nbytes, after=after)
                found.append((work, dimension))

    def _behind(self, one: Pass, index: int, *, final: bool) -> Steps:
        """Reduce a unit's gradients, and give its weights back."""
        yield from StageProcess._behind(self, one, index, final=final)
        number = self._of.get((one.chunk, index))
        if number is None:
            return
        unit = self._units[number]
        if unit.reshard if one.kind == "F" else index == unit.bucket.ready and self._gone(one, final=final):
            self._whole.discard(number)

    def _gone(self, one: Pass, *, final: bool) -> bool:
        """Whether weights are given back after a backward pass."""
        return final if self.pacing.stays else one.kind == "B"

    def _reduce(self, bucket: LayerBucket) -> Steps:
        if "dp" not in self.groups or not bucket.weights:
            return
        if self._last is not None:
            work, dimension = self._last
            yield from self._hold([work], dimension)
            self._reduced.remove(self._last)
            self._last = None
        unit = self._units[self._of[bucket.chunk, bucket.ready]]
        yield from self._items(unit.pack_experts if bucket.experts else unit.pack, "backward")
        already = len(self._reduced)
        yield from StageProcess._reduce(self, bucket)
        self._last = self._reduced[already] if len(self._reduced) > already else None

    def _end(self) -> Steps:
        yield from StageProcess._end(self)
        self._last = None

    def _gather(self) -> Steps:
        """Nothing: weights are gathered layer by layer."""
        yield from ()
