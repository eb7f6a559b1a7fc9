"""A transformer by its dimensions, and the weights that they make."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from simperf.errors import InputError, Problem, nearest, nearest_divisors

__all__ = ["ACTIVATIONS", "NORMS", "POSITIONS", "Transformer", "Weight"]

Activation = Literal["swiglu", "geglu", "gelu", "relu", "relu2"]
Norm = Literal["rms", "layer"]
Positions = Literal["rotary", "learned", "alibi", "none"]

#: of the feed-forward network; the first two multiply the activation by a gate, with a third matrix; the last is the
#: square of a ReLU
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
NORMS: tuple[Norm, ...] = get_args(Norm)
POSITIONS: tuple[Positions, ...] = get_args(Positions)

#: no dimension is larger
MOST = 10**8
#: blocks of a model: the deepest that was published has 2,500, and each takes memory and time before anything is run
MOST_BLOCKS = 10_000
_BLOCKS = ("layers", "window_layers", "dense_layers", "mtp")
_FLAGS = (
    *("norm_bias", "tied", "bias", "qkv_bias", "qk_norm", "embed_norm"),
    *("sinks", "parallel_block", "dropout", "router_bias"),
)


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
    """A decoder-only transformer, normalised before attention and before the feed-forward network, or before both.

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
    norm_bias : bool
        Whether layer normalization has its biases.
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
    embed_norm : bool
        Whether the embedding is normalised.
    sinks : bool
        Whether attention has a learned sink, a weight a query head.
    parallel_block : bool
        Whether attention and the feed-forward network stand side by side: both read the input of the block, normalised
        once, and are added to it.
    window : int
        Tokens that attention looks back at in `window_layers` of the blocks; 0 for all.
    window_layers : int
        Blocks with the window.
    kv_rank : int
        Width that keys and values are compressed to (latent attention, DeepSeek-V2, 2024); 0 for none. Then `head_dim`
        is the width of a head without positions.
    q_rank : int
        Width that queries are compressed to; 0 for none.
    rope_dim : int
        Width of a head with rotary positions beside `head_dim`, its key shared by all heads, with latent attention.
    value_dim : int
        Width of a value head with latent attention; 0 for `head_dim`.
    dropout : bool
        Whether training drops elements after the embedding, attention and the feed-forward network.
    experts : int
        Feed-forward networks of a block, from which a router chooses; 0 for a dense model.
    experts_per_token : int
        How many it chooses.
    expert_ffn : int
        Width inside an expert; 0 for `ffn`.
    router_bias : bool
        Whether the router has a bias an expert, by which loads are kept even.
    shared_experts : int
        Experts that every token meets beside those that the router chooses.
    dense_layers : int
        First blocks, which have one feed-forward network of width `ffn` instead of experts.
    mtp : int
        Blocks that predict tokens further ahead (multi-token prediction, DeepSeek-V3, 2024), which share embedding and
        head.
    name : str
    title, source : str
        What people call it, and where its dimensions come from.

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
    norm_bias: bool = True
    positions: Positions = "rotary"
    tied: bool = False
    bias: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    embed_norm: bool = False
    sinks: bool = False
    parallel_block: bool = False
    window: int = 0
    window_layers: int = 0
    kv_rank: int = 0
    q_rank: int = 0
    rope_dim: int = 0
    value_dim: int = 0
    dropout: bool = False
    experts: int = 0
    experts_per_token: int = 0
    expert_ffn: int = 0
    router_bias: bool = False
    shared_experts: int = 0
    dense_layers: int = 0
    mtp: int = 0
    name: str = "transformer"
    title: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        problems = [*self._counts()]
        for key, known in (("activation", ACTIVATIONS), ("norm", NORMS), ("positions", POSITIONS)):
            value = getattr(self, key)
            if value not in known:
                message = f"no such {key}{nearest(str(value), known)}"
                problems.append(Problem(message, key=key, value=str(value), expected=", ".join(known)))
        for key in _FLAGS:
            if not isinstance(value := getattr(self, key), bool):
                problems.append(Problem("yes or no is expected", key=key, value=repr(value), expected="true or false"))
        for key in ("name", "title", "source"):
            if not isinstance(value := getattr(self, key), str):
                problems.append(Problem("a text is expected", key=key, value=repr(value), expected="a text in quotes"))
        if not problems:
            problems += self._consistency()
        if problems:
            raise InputError(problems)

    def _counts(self) -> Iterator[Problem]:
        needed = ("layers", "hidden", "heads", "vocabulary", "sequence")
        attention = ("kv_heads", "head_dim", "window", "window_layers", "kv_rank", "q_rank", "rope_dim", "value_dim")
        network = ("ffn", "experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "mtp")
        for key in (*needed, *attention, *network):
            value, least = getattr(self, key), 1 if key in needed else 0
            most = MOST_BLOCKS if key in _BLOCKS else MOST
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                message = f"a whole number, {least} or more, is expected"
                yield Problem(message, key=key, value=repr(value), expected=f"{least} to {most:,}")

    def _consistency(self) -> Iterator[Problem]:
        if self.heads % (self.kv_heads or self.heads):
            message = f"{self.heads} query heads are not a multiple of the key and value heads"
            expected = " or ".join(map(str, nearest_divisors(self.heads, self.kv_heads)))
            yield Problem(message, key="kv_heads", value=str(self.kv_heads), expected=expected)
        if not self.head_dim and self.hidden % self.heads:
            message = f"hidden = {self.hidden} is not a multiple of {self.heads} heads"
            near = " or ".join(map(str, nearest_divisors(self.hidden, self.heads)))
            yield Problem(message, key="heads", value=str(self.heads), expected=f"{near}, or a head_dim")
        if bool(self.experts) != bool(self.experts_per_token) or self.experts_per_token > self.experts:
            message = "a router chooses some of the experts of a block"
            expected = f"1 to {self.experts}" if self.experts else "0, or a number of experts"
            yield Problem(message, key="experts_per_token", value=str(self.experts_per_token), expected=expected)
        for key in ("expert_ffn", "router_bias", "shared_experts", "dense_layers"):
            if getattr(self, key) and not self.experts:
                told = "a dense model has none, or experts and experts_per_token"
                yield Problem("has no effect without experts", key=key, value=str(getattr(self, key)), expected=told)
        if not self.norm_bias and self.norm != "layer":
            message = "has no effect: rms normalization has no bias"
            yield Problem(message, key="norm_bias", value="false", expected='no norm_bias, or norm = "layer"')
        if self.dense_layers > self.layers:
            message, most = f"there are {self.layers} layers", f"at most {self.layers}"
            yield Problem(message, key="dense_layers", value=str(self.dense_layers), expected=most)
        if self.qkv_bias and self.bias:
            yield Problem("has no effect: all matrices have biases", key="qkv_bias", value="true", expected="false")
        yield from self._attention()

    def _attention(self) -> Iterator[Problem]:
        """Problems of the kind of attention."""
        for key in ("q_rank", "rope_dim", "value_dim"):
            if getattr(self, key) and not self.kv_rank:
                message = "has no effect without kv_rank"
                yield Problem(
                    message, key=key, value=str(getattr(self, key)), expected="latent attention, with kv_rank"
                )
        if self.kv_rank and self.kv_heads not in (0, self.heads):
            message = "latent attention has as many key and value heads as query heads"
            yield Problem(message, key="kv_heads", value=str(self.kv_heads), expected=f"0 or {self.heads}")
        if self.kv_rank and (self.qk_norm or self.qkv_bias):
            key = "qk_norm" if self.qk_norm else "qkv_bias"
            yield Problem("has no effect with latent attention", key=key, value="true", expected="false")
        if bool(self.window) != bool(self.window_layers) or self.window_layers > self.layers:
            message = "a window holds for some of the layers"
            expected = f"1 to {self.layers}, both given or neither"
            yield Problem(message, key="window_layers", value=str(self.window_layers), expected=expected)

    def is_windowed(self, number: int) -> bool:
        """Whether a block, counted from 0, has the window: such blocks are spread evenly, from the first one on."""
        return number * self.window_layers % self.layers < self.window_layers

    @property
    def head_width(self) -> int:
        """Width of a head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def query_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * (self.head_width + self.rope_dim)

    @property
    def key_width(self) -> int:
        """Width of all key heads together."""
        return (self.kv_heads or self.heads) * (self.head_width + self.rope_dim)

    @property
    def value_width(self) -> int:
        """Width of all value heads together."""
        return (self.kv_heads or self.heads) * (self.value_dim or self.head_width)

    @property
    def attended_width(self) -> int:
        """Width of what attention gives: a value head for each query head."""
        return self.heads * (self.value_dim or self.head_width)

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
        ends = sum(one.elements for one in self._ends())
        dense = self._count(self.block_weights("block", dense=True)) if self.dense_layers else 0
        block = self._count(self.block_weights("block"))
        ahead = self.mtp and self.mtp * (block + self._count(self._ahead("mtp")))
        return ends + self.dense_layers * dense + (self.layers - self.dense_layers) * block + ahead

    @property
    def active_parameters(self) -> int:
        """Number of weights that a token meets: of the experts only those that the router chooses."""
        idle = self.experts - self.experts_per_token
        blocks = self.layers - self.dense_layers + self.mtp
        return self.parameters - blocks * idle * self._count(self._network("expert", self.inner_width))

    def weights(self) -> Iterator[Weight]:
        """All weights, from the embedding to the head, and of blocks that look further ahead."""
        ends = list(self._ends())
        first = 1 + (self.positions == "learned") + self.embed_norm * len(list(self._norm("")))
        yield from ends[:first]
        for layer in range(self.layers):
            yield from self.block_weights(f"blocks.{layer}", dense=layer < self.dense_layers)
        yield from ends[first:]
        for number in range(self.mtp):
            yield from self._ahead(f"mtp.{number}")
            yield from self.block_weights(f"mtp.{number}.block")

    def end_weights(self) -> Iterator[Weight]:
        """Weights before and behind the blocks, and of one depth of multi-token prediction but its block."""
        yield from self._ends()
        if self.mtp:
            yield from self._ahead("mtp.0")

    def block_weights(self, name: str, *, dense: bool = False) -> Iterator[Weight]:
        """Weights of one block, with its experts or, if `dense`, without."""
        yield from self._norm(f"{name}.norm1")
        yield from self._latent(name) if self.kv_rank else self._heads(name)
        if not self.parallel_block:
            yield from self._norm(f"{name}.norm2")
        if not self.experts or dense:
            yield from self._network(name, self.ffn or 4 * self.hidden)
            return
        yield from _linear(f"{name}.router", self.hidden, self.experts, bias=self.bias or self.router_bias)
        for expert in range(self.experts):
            yield from self._network(f"{name}.experts.{expert}", self.inner_width)
        if self.shared_experts:
            yield from self._network(f"{name}.shared", self.shared_experts * self.inner_width)

    def _count(self, weights: Iterator[Weight]) -> int:
        return sum(one.elements for one in weights)

    def _heads(self, name: str) -> Iterator[Weight]:
        """Weights of attention with keys and values of its own."""
        bias = self.bias or self.qkv_bias
        for part, width in (("q", self.query_width), ("k", self.key_width), ("v", self.value_width)):
            yield from _linear(f"{name}.{part}", self.hidden, width, bias=bias)
        yield from _linear(f"{name}.o", self.attended_width, self.hidden, bias=self.bias)
        if self.qk_norm:
            yield Weight(f"{name}.q_norm.weight", (self.head_width,))
            yield Weight(f"{name}.k_norm.weight", (self.head_width,))
        if self.sinks:
            yield Weight(f"{name}.sinks", (self.heads,))

    def _latent(self, name: str) -> Iterator[Weight]:
        """Weights of latent attention: compressed, normalised, and made into heads."""
        if self.q_rank:
            yield from _linear(f"{name}.q_down", self.hidden, self.q_rank, bias=self.bias)
            yield Weight(f"{name}.q_norm.weight", (self.q_rank,))
        yield from _linear(f"{name}.q", self.q_rank or self.hidden, self.query_width, bias=self.bias)
        yield from _linear(f"{name}.kv_down", self.hidden, self.kv_rank + self.rope_dim, bias=self.bias)
        yield Weight(f"{name}.kv_norm.weight", (self.kv_rank,))
        made = self.heads * self.head_width + self.value_width
        yield from _linear(f"{name}.kv", self.kv_rank, made, bias=self.bias)
        yield from _linear(f"{name}.o", self.attended_width, self.hidden, bias=self.bias)

    def _network(self, name: str, width: int) -> Iterator[Weight]:
        """Weights of a feed-forward network."""
        for part in ("gate", "up") if self.gated else ("up",):
            yield from _linear(f"{name}.{part}", self.hidden, width, bias=self.bias)
        yield from _linear(f"{name}.down", width, self.hidden, bias=self.bias)

    def _norm(self, name: str) -> Iterator[Weight]:
        yield Weight(f"{name}.weight", (self.hidden,))
        if self.norm == "layer" and self.norm_bias:
            yield Weight(f"{name}.bias", (self.hidden,))

    def _ahead(self, name: str) -> Iterator[Weight]:
        """Weights of multi-token prediction beside its block: what joins the last states and the next tokens."""
        yield from self._norm(f"{name}.norm_state")
        yield from self._norm(f"{name}.norm_token")
        yield Weight(f"{name}.join.weight", (self.hidden, 2 * self.hidden))
        yield from self._norm(f"{name}.norm")

    def _ends(self) -> Iterator[Weight]:
        """Weights before and behind the blocks."""
        yield Weight("embed.weight", (self.vocabulary, self.hidden))
        if self.positions == "learned":
            yield Weight("position.weight", (self.sequence, self.hidden))
        if self.embed_norm:
            yield from self._norm("embed_norm")
        yield from self._norm("norm")
        if not self.tied:
            yield Weight("head.weight", (self.vocabulary, self.hidden))


def _linear(name: str, fan_in: int, fan_out: int, *, bias: bool) -> Iterator[Weight]:
    yield Weight(f"{name}.weight", (fan_out, fan_in))
    if bias:
        yield Weight(f"{name}.bias", (fan_out,))
