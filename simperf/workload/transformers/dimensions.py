"""A transformer by its dimensions, and the weights that they make."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from simperf.errors import InputError, Problem, nearest

__all__ = ["ACTIVATIONS", "NORMS", "POSITIONS", "Transformer", "Weight"]

Activation = Literal["swiglu", "geglu", "gelu", "relu"]
Norm = Literal["rms", "layer"]
Positions = Literal["rotary", "learned", "none"]

#: of the feed-forward network; the first two multiply the activation by a gate, with a third matrix
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
NORMS: tuple[Norm, ...] = get_args(Norm)
POSITIONS: tuple[Positions, ...] = get_args(Positions)

#: no dimension is larger
MOST = 10**8


class Weight(NamedTuple):
    """A parameter: its name and shape."""

    name: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of weights."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A decoder-only transformer, normalised before attention and before the feed-forward network.

    Parameters
    ----------
    layers : int
        Blocks.
    hidden : int
        Width of the residual stream.
    heads : int
        Query heads.
    vocabulary : int
        Tokens of the embedding and the head.
    sequence : int
        Tokens of a sample; with learned positions as many are embedded.
    kv_heads : int
        Key and value heads, which divide the query heads (grouped-query attention); 0 for as many as query heads.
    head_dim : int
        Width of a head; 0 for `hidden` / `heads`.
    ffn : int
        Width inside the feed-forward network; 0 for 4 `hidden`.
    activation : str
        One of `ACTIVATIONS`.
    norm : str
        Root mean square (``"rms"``) or ``"layer"`` normalization, with weights and for the latter biases.
    positions : str
        One of `POSITIONS`.
    tied : bool
        Whether the head has the weights of the embedding.
    bias : bool
        Whether all matrices of a block have biases.
    qkv_bias : bool
        Whether those of queries, keys and values have, if not all.
    qk_norm : bool
        Whether queries and keys are normalised, with weights of the width of a head.
    dropout : bool
        Whether training drops elements after the embedding, attention and the feed-forward network.
    experts : int
        Feed-forward networks of a block, from which a router chooses; 0 for a dense model.
    experts_per_token : int
        How many it chooses.
    expert_ffn : int
        Width inside an expert; 0 for `ffn`.
    name : str

    Raises
    ------
    InputError
        All dimensions that make no sense.

    Examples
    --------
    >>> llama = Transformer(layers=32, hidden=4096, heads=32, ffn=11008, vocabulary=32000, sequence=4096)
    >>> llama.parameters
    6738415616
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence: int
    kv_heads: int = 0
    head_dim: int = 0
    ffn: int = 0
    activation: Activation = "swiglu"
    norm: Norm = "rms"
    positions: Positions = "rotary"
    tied: bool = False
    bias: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    dropout: bool = False
    experts: int = 0
    experts_per_token: int = 0
    expert_ffn: int = 0
    name: str = "transformer"

    def __post_init__(self) -> None:
        problems = [*self._counts()]
        for key, known in (("activation", ACTIVATIONS), ("norm", NORMS), ("positions", POSITIONS)):
            value = getattr(self, key)
            if value not in known:
                message = f"no such {key}{nearest(str(value), known)}"
                problems.append(Problem(message, key=key, value=str(value), expected=", ".join(known)))
        for key in ("tied", "bias", "qkv_bias", "qk_norm", "dropout"):
            if not isinstance(value := getattr(self, key), bool):
                problems.append(Problem("yes or no is expected", key=key, value=repr(value), expected="true or false"))
        if not isinstance(self.name, str):
            problems.append(Problem("a name is expected", key="name", value=repr(self.name), expected="a text"))
        if not problems:
            problems += self._consistency()
        if problems:
            raise InputError(problems)

    def _counts(self) -> Iterator[Problem]:
        needed = ("layers", "hidden", "heads", "vocabulary", "sequence")
        for key in (*needed, "kv_heads", "head_dim", "ffn", "experts", "experts_per_token", "expert_ffn"):
            value, least = getattr(self, key), 1 if key in needed else 0
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
                message = f"a whole number, {least} or more, is expected"
                yield Problem(message, key=key, value=repr(value), expected=f"{least} to {MOST:,}")

    def _consistency(self) -> Iterator[Problem]:
        if self.heads % (self.kv_heads or self.heads):
            message = f"{self.heads} query heads are not a multiple of the key and value heads"
            yield Problem(message, key="kv_heads", value=str(self.kv_heads), expected="a divisor of heads")
        if not self.head_dim and self.hidden % self.heads:
            message = f"hidden = {self.hidden} is not a multiple of {self.heads} heads"
            yield Problem(message, key="heads", value=str(self.heads), expected="a divisor of hidden, or head_dim")
        if bool(self.experts) != bool(self.experts_per_token) or self.experts_per_token > self.experts:
            message = "a router chooses some of the experts of a block"
            expected = "1 to experts, both given or neither"
            yield Problem(message, key="experts_per_token", value=str(self.experts_per_token), expected=expected)
        if self.expert_ffn and not self.experts:
            yield Problem("has no effect without experts", key="expert_ffn", value=str(self.expert_ffn))
        if self.qkv_bias and self.bias:
            yield Problem("has no effect: all matrices have biases", key="qkv_bias", value="true", expected="false")

    @property
    def head_width(self) -> int:
        """Width of a head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def query_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_width

    @property
    def key_width(self) -> int:
        """Width of all key heads together; value heads have the same."""
        return (self.kv_heads or self.heads) * self.head_width

    @property
    def inner_width(self) -> int:
        """Width inside the feed-forward network, or inside an expert."""
        return (self.expert_ffn if self.experts else 0) or self.ffn or 4 * self.hidden

    @property
    def gated(self) -> bool:
        """Whether the feed-forward network has a gate."""
        return self.activation in ("swiglu", "geglu")

    @property
    def parameters(self) -> int:
        """Number of weights, shared ones counted once."""
        first = sum(one.elements for one in self._ends())
        return first + self.layers * sum(one.elements for one in self.block_weights("block"))

    @property
    def active_parameters(self) -> int:
        """Number of weights that a token meets: of the experts only those that the router chooses."""
        idle = self.experts - self.experts_per_token
        return self.parameters - self.layers * idle * sum(one.elements for one in self._network("expert"))

    def weights(self) -> Iterator[Weight]:
        """All weights, from the embedding to the head."""
        ends = list(self._ends())
        first = 2 if self.positions == "learned" else 1
        yield from ends[:first]
        for layer in range(self.layers):
            yield from self.block_weights(f"blocks.{layer}")
        yield from ends[first:]

    def block_weights(self, name: str) -> Iterator[Weight]:
        """Weights of one block."""
        yield from self._norm(f"{name}.norm1")
        for part, fan_in, fan_out in self._projections():
            yield from _linear(f"{name}.{part}", fan_in, fan_out, bias=self.bias or (self.qkv_bias and part != "o"))
        if self.qk_norm:
            yield Weight(f"{name}.q_norm.weight", (self.head_width,))
            yield Weight(f"{name}.k_norm.weight", (self.head_width,))
        yield from self._norm(f"{name}.norm2")
        if not self.experts:
            yield from self._network(name)
            return
        yield Weight(f"{name}.router.weight", (self.experts, self.hidden))
        for expert in range(self.experts):
            yield from self._network(f"{name}.experts.{expert}")

    def _projections(self) -> Iterator[tuple[str, int, int]]:
        """Name, input and output width of the matrices of attention."""
        yield "q", self.hidden, self.query_width
        yield "k", self.hidden, self.key_width
        yield "v", self.hidden, self.key_width
        yield "o", self.query_width, self.hidden

    def _network(self, name: str) -> Iterator[Weight]:
        """Weights of a feed-forward network."""
        for part in ("gate", "up") if self.gated else ("up",):
            yield from _linear(f"{name}.{part}", self.hidden, self.inner_width, bias=self.bias)
        yield from _linear(f"{name}.down", self.inner_width, self.hidden, bias=self.bias)

    def _norm(self, name: str) -> Iterator[Weight]:
        yield Weight(f"{name}.weight", (self.hidden,))
        if self.norm == "layer":
            yield Weight(f"{name}.bias", (self.hidden,))

    def _ends(self) -> Iterator[Weight]:
        """Weights before and behind the blocks."""
        yield Weight("embed.weight", (self.vocabulary, self.hidden))
        if self.positions == "learned":
            yield Weight("position.weight", (self.sequence, self.hidden))
        yield from self._norm("norm")
        if not self.tied:
            yield Weight("head.weight", (self.vocabulary, self.hidden))


def _linear(name: str, fan_in: int, fan_out: int, *, bias: bool) -> Iterator[Weight]:
    yield Weight(f"{name}.weight", (fan_out, fan_in))
    if bias:
        yield Weight(f"{name}.bias", (fan_out,))
