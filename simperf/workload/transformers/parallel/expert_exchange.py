"""Rows of tokens that go to experts' ranks and back: a row for each choice, or each token once to a rank.

A row for each choice is how Megatron-Core's dispatcher by all-to-all does it (token_dispatcher.py,
MoEAlltoAllTokenDispatcher). By kernels of DeepEP (the same file, MoEFlexTokenDispatcher; deepseek-ai/DeepEP) a token
goes once to each rank that has any of its experts, with its choices (8 bytes) and scores (4 bytes); there it is copied
to a row for each of its experts, and their results are added up before they go back, where the kernel adds up the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simperf.workload.op import Op
from simperf.workload.precision import SINGLE
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import CollectiveName, Kept

__all__ = ["RowExchange", "TokenExchange"]

#: bytes of the number of an expert [B]
_CHOICE = 8.0


@dataclass(frozen=True, slots=True)
class RowExchange:
    """A row for each choice of a token, sent by NCCL.

    Parameters
    ----------
    sizes : RankSizes
    """

    sizes: RankSizes

    def to_experts(self, record: PassRecord, x: str) -> None:
        """Rows of the tokens `x`, with their scores, in the order of the experts."""
        experts, row = self.sizes.experts, self.sizes.width * self.sizes.hidden
        moved = self._copy(experts.sent)
        record.op(
            moved, "permute", makes=[Kept("rows", row * experts.sent), Kept("rows.scores", SINGLE * experts.sent)]
        )
        self._exchange(record, "dispatch", "rows", "rows.arrived", back=False)
        self._exchange(record, "dispatch", "rows.scores", "scores", back=False)
        self._sort(record, "rows.arrived", "rows.sorted")

    def from_experts(self, record: PassRecord) -> None:
        """Send back the outputs of the experts, added up for each token."""
        self._sort(record, "experts.down.output", "rows.made", back=True)
        self._exchange(record, "combine", "rows.made", "rows.back", back=True)
        made = [Kept("experts.output", self.sizes.local)]
        record.op(self._gathered("unpermute"), "unpermute", makes=made, frees=("rows.back",))

    def gradient_to_experts(self, record: PassRecord, gradient: str, *, last: bool) -> None:
        """Gradients of what the experts make; `last` says whether nothing else reads those of the tokens."""
        experts, row = self.sizes.experts, self.sizes.width * self.sizes.hidden
        moved = self._copy(experts.sent)
        made = [Kept("rows.back.gradient", row * experts.sent)]
        record.op(moved, "unpermute.gradient", makes=made, frees=(gradient,) if last else ())
        self._exchange(record, "dispatch", "rows.back.gradient", "rows.made.gradient", back=False)
        self._sort(record, "rows.made.gradient", "experts.down.gradient")

    def gradient_from_experts(self, record: PassRecord, inner: str) -> None:
        """Gradients `inner` of the rows, and of the scores, added up for each token."""
        self._sort(record, inner, "rows.arrived.gradient", back=True)
        self._exchange(record, "combine", "rows.arrived.gradient", "rows.gradient", back=True)
        self._exchange(record, "combine", "scores.gradient", "rows.scores.gradient", back=True)
        made = [Kept("permute.input.gradient", self.sizes.local)]
        frees = ("rows.gradient", "permute.map")
        record.op(self._gathered("permute_backward"), "permute.gradient", makes=made, frees=frees)

    def _exchange(
        self, record: PassRecord, name: Literal["dispatch", "combine"], x: str, made: str, *, back: bool
    ) -> None:
        """Rows go to their experts' ranks, or back from there; etp ranks have all rows of each other's tokens there."""
        experts, size = self.sizes.experts, SINGLE if "scores" in x else self.sizes.width * self.sizes.hidden
        sent, rows = size * experts.sent, size * experts.rows
        kind: CollectiveName = name if experts.uneven else "all-to-all"
        over = (kind, "ep", size * experts.exchanged, sent if back else size * experts.received)
        steps: list[tuple[CollectiveName, str, float, float]] = [over] if experts.ep > 1 else []  # with what they make
        if experts.etp > 1 and back:
            steps.insert(0, ("reduce-scatter", "etp", rows, rows / experts.etp))
        elif experts.etp > 1:
            steps.append(("all-gather", "etp", rows, rows))
        for collective, dimension, nbytes, result in steps:
            record.sync(collective, nbytes, f"{x}.{collective}", dimension=dimension)
            record.hold(f"{made}.{collective}", result)
            record.free(x)
            x = f"{made}.{collective}"
        record.free(x)
        record.hold(made, sent if back else rows)

    def _sort(self, record: PassRecord, x: str, made: str, *, back: bool = False) -> None:
        """Rows of several experts in the order of the experts, or of the ranks again."""
        sizes, experts = self.sizes, self.sizes.experts
        size = sizes.width * sizes.hidden * experts.rows
        if experts.count > 1:
            op = self._copy(experts.rows)
            record.op(op, f"{x}.sort{'.back' if back else ''}", makes=[Kept(made, size)], frees=(x,))
        else:
            record.free(x)
            record.hold(made, size)

    def _copy(self, rows: float) -> Op:
        """A kernel that copies rows."""
        width, dtype = self.sizes.width, self.sizes.precision
        elements = rows * self.sizes.hidden
        return each("copy", elements, flops=0.0, read=width, written=width, dtype=dtype, family="copy")

    def _gathered(self, kind: str) -> Op:
        """A kernel that adds up the rows of each token."""
        sizes, experts = self.sizes, self.sizes.experts
        n = sizes.local_tokens * sizes.hidden
        read = sizes.width * experts.sent / sizes.local_tokens
        return each(kind, n, flops=experts.sent / sizes.local_tokens, read=read, written=sizes.width, dtype="fp32")


@dataclass(frozen=True, slots=True)
class TokenExchange:
    """A token once for each rank that has any of its experts, sent by kernels of DeepEP.

    Parameters
    ----------
    sizes : RankSizes
    """

    sizes: RankSizes

    def to_experts(self, record: PassRecord, x: str) -> None:
        """Rows of the tokens `x`, with their scores, in the order of the experts."""
        sizes, chosen = self.sizes, self.sizes.model.experts_per_token
        more = (SINGLE + _CHOICE) * chosen
        self._send(record, "dispatch", x, more)
        record.hold("tokens.arrived", self._arrived(more))
        made = [Kept("rows.sorted", self._rows), Kept("scores", SINGLE * sizes.experts.rows)]
        record.op(self._moved("permute", back=False), "permute", makes=made, frees=("tokens.arrived",))

    def from_experts(self, record: PassRecord) -> None:
        """Send back the outputs of the experts, added up for each token."""
        made = [Kept("tokens.made", self._arrived())]
        record.op(self._moved("unpermute", back=True), "unpermute", makes=made, frees=("experts.down.output",))
        self._send(record, "combine", "tokens.made", 0.0)
        record.hold("experts.output", self.sizes.local)
        record.free("tokens.made")

    def gradient_to_experts(self, record: PassRecord, gradient: str, *, last: bool) -> None:
        """Gradients of what the experts make; `last` says whether nothing else reads those of the tokens."""
        self._send(record, "dispatch", gradient, 0.0)
        record.hold("tokens.made.gradient", self._arrived())
        if last:
            record.free(gradient)
        made, frees = [Kept("experts.down.gradient", self._rows)], ("tokens.made.gradient",)
        record.op(self._moved("permute", back=False), "unpermute.gradient", makes=made, frees=frees)

    def gradient_from_experts(self, record: PassRecord, inner: str) -> None:
        """Gradients `inner` of the rows, and of the scores, added up for each token."""
        sizes, more = self.sizes, SINGLE * self.sizes.model.experts_per_token
        made = [Kept("tokens.arrived.gradient", self._arrived(more))]
        frees = (inner, "scores.gradient", "permute.map")
        record.op(self._moved("permute_backward", back=True), "permute.gradient", makes=made, frees=frees)
        self._send(record, "combine", "tokens.arrived.gradient", more)
        record.hold("permute.input.gradient", sizes.local)
        record.hold("rows.scores.gradient", more * sizes.local_tokens)
        record.free("tokens.arrived.gradient")

    @property
    def _rows(self) -> float:
        """Bytes of the rows that this rank's experts compute [B]."""
        return self.sizes.width * self.sizes.hidden * self.sizes.experts.rows

    def _arrived(self, more: float = 0.0) -> float:
        """Bytes of the tokens that this rank gets, each with `more` bytes [B]."""
        return (self.sizes.width * self.sizes.hidden + more) * self.sizes.experts.arrived

    def _send(self, record: PassRecord, name: Literal["dispatch", "combine"], x: str, more: float) -> None:
        """Tokens go to the ranks of their experts, or come back; the payload is that of a rank's own tokens."""
        sizes = self.sizes
        nbytes = (sizes.width * sizes.hidden + more) * sizes.local_tokens
        record.sync(name, nbytes, f"{x}.{name}", dimension="ep")

    def _moved(self, kind: str, *, back: bool) -> Op:
        """A kernel that copies tokens to the rows of their experts, or adds these up."""
        sizes, experts = self.sizes, self.sizes.experts
        n, many = experts.arrived * sizes.hidden, experts.rows / experts.arrived if experts.rows else 0.0
        read, written = (many, 1.0) if back else (1.0, many)
        flops, dtype = many if back else 0.0, "fp32" if back else sizes.precision
        return each(kind, n, flops=flops, read=sizes.width * read, written=sizes.width * written, dtype=dtype)
