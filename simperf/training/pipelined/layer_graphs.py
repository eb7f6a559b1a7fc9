"""Blocks that are captured in CUDA graphs: a pass over one is a replay, which the host launches once.

Megatron-LM (``--cuda-graph-impl``) and Transformer Engine (``make_graphed_callables``) capture the forward pass and the
backward pass of each layer before the steps that are timed, so that capture is no part of a step. In a step the host
pays for the launch of a graph, at its first node, whatever kernels and collectives follow; the device takes the
frontend's gap more for each kernel. Embedding, head, messages, gradients and the update are launched one by one.

Not modelled: copies to the tensors that a graph reads, the memory that graphs keep, and their place in the bounded
queue of launches, where a replay is one item and each of its nodes counts here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem
from simperf.execution.modes import Mode
from simperf.execution.profile import FrontendPart
from simperf.execution.session import Session
from simperf.execution.thread import Launch
from simperf.layout import Layout
from simperf.schedules import Schedule
from simperf.training.offload import Offload
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel
from simperf.workload.transformers.passes import Await, Item, LayerPasses, Sync

__all__ = ["GraphSync", "LayerGraphs", "refuse_uncapturable", "refuse_unlaunched", "tell_graphs"]

#: what blocks have that cannot be captured as a whole. NVIDIA/Megatron-LM at core_v0.13.0 (c550cf6c),
#: megatron/core/transformer/transformer_config.py, refuses recomputation and offloading beside graphs of layers
_NONE = 'captured = "none"'


@dataclass(frozen=True, slots=True)
class GraphSync(Sync):
    """A collective that is a node of a graph.

    Parameters
    ----------
    launch : float
        Time of the host at it [s]: that of the whole graph at its first node, else none.
    """

    launch: float = 0.0


@dataclass(frozen=True, slots=True)
class LayerGraphs:
    """The graphs of a rank's blocks.

    Parameters
    ----------
    launch : float
        Time of the host to replay a graph [s].
    node : float
        What each node adds to that [s].
    gap : float
        Time of the device between two nodes [s].
    passes : frozenset of int
        Identities of the items of passes that are captured.
    """

    launch: float
    node: float
    gap: float
    passes: frozenset[int]

    @classmethod
    def of(cls, profile: FrontendPart, layers: Iterator[LayerPasses]) -> LayerGraphs:
        """The graphs of the blocks among some layers, as a frontend launches them."""
        passes = {
            id(items)
            for one in layers
            if one.is_block
            for items in (one.forward, one.backward, one.input_gradients, one.weight_gradients)
        }
        return cls(profile.graph_launch, profile.graph_node, profile.graph_gap, frozenset(passes))

    def nodes(
        self, items: Sequence[Item], launched: Sequence[Launch | Sync | Await]
    ) -> tuple[Launch | Sync | Await, ...]:
        """Launches for the items of a pass: as they are, or as nodes of a graph if the pass is captured.

        Examples
        --------
        >>> graphs, items = LayerGraphs(8e-6, 1e-7, 0.0, frozenset()), (Sync("all-reduce", "tp", 8.0, "a"),)
        >>> graphs.nodes(items, items) == items
        True
        >>> graphs = replace(graphs, passes=frozenset([id(items)]))
        >>> [one.launch for one in graphs.nodes(items, items * 2)]
        [8.2e-06, 0.0]
        """
        if id(items) not in self.passes:
            return tuple(launched)
        count = sum(not isinstance(one, Await) for one in launched)
        left, found = self.launch + self.node * count, list[Launch | Sync | Await]()
        for one in launched:
            found.append(one if isinstance(one, Await) else self._node(one, left))
            left = left if isinstance(one, Await) else 0.0
        return tuple(found)

    def _node(self, one: Launch | Sync, launch: float) -> Launch | Sync:
        if isinstance(one, Sync):
            return GraphSync(one.name, one.dimension, one.nbytes, one.label, one.waits, launch)
        assert isinstance(one.kernel, Kernel)
        time = max(0.0, one.kernel.time + self.gap)
        return Launch(replace(one.kernel, time=time, launch=launch), one.stream)


def tell_graphs(m: Session) -> None:
    """Report what a replay takes, where that is from, and what was assumed."""
    profile = m.profile
    for key in ("graph_launch", "graph_node", "graph_gap"):
        if getattr(profile, key):
            m.sources |= {f"{profile.name}: {key}": source for source in [profile.source(key)] if source}
        else:
            m.assumed[f"{profile.name}: {key}"] = "0: no source gives it"
    m.contains.append("blocks as captured graphs: the host launches a pass over a block once")
    m.leaves_out.append("capture of graphs (it comes before the first step), copies to what they read, their memory")


def refuse_unlaunched(profile: FrontendPart, mode: Mode) -> None:
    """Refuse graphs where the frontend has no time to launch one, or waits for each kernel.

    Raises
    ------
    InputError
        The option, and what would do.
    """
    problems = []
    if not profile.graph_launch:
        message = f"a replay takes frontend.graph_launch, which frontend {profile.name} does not have"
        expected = 'frontend.graph_launch = "8 us", such as pytorch has'
        problems.append(Problem(message, key="captured", value="layers", expected=expected))
    if mode.waits:
        message = "a host that waits for each kernel replays no graph"
        problems.append(Problem(message, key="execution.mode", value=mode.name, expected=f"eager, or {_NONE}"))
    if problems:
        raise InputError(problems)


def refuse_uncapturable(
    model: Dimensions, layout: Layout, strategy: ModelParallel, plan: Schedule, offload: Offload
) -> None:
    """Refuse graphs of blocks that cannot be captured as a whole.

    Raises
    ------
    InputError
        All that is in the way, with what would do.
    """
    if model.kernels.captured == "none":
        return
    problems, routing = list[Problem](), strategy.routing
    if model.model.experts and not routing.padded:
        message = "the host waits for the rows of experts, whose numbers change, amid the block that it would capture"
        expected = f"an expert_capacity with pad_experts = true, or {_NONE}"
        problems.append(Problem(message, key="captured", value="layers", expected=expected))
    if strategy.recompute != "none":
        message = "blocks that are captured are not computed again"
        expected = f'recompute = "none", or {_NONE}'
        problems.append(Problem(message, key="recompute", value=strategy.recompute, expected=expected))
    if offload.layers:
        message = "activations of captured blocks have places of their own on the GPU"
        told = str(offload.layers)
        problems.append(Problem(message, key="offload_layers", value=told, expected=f"0, or {_NONE}"))
    if layout.sharding == "zero-3":
        message = "a graph reads weights where they were when it was captured; gathered ones have no such place"
        expected = f'"zero-1", "zero-2", or {_NONE}'
        problems.append(Problem(message, key="layout.sharding", value="zero-3", expected=expected))
    if plan.beside:
        message = "its passes take turns within a block, where a graph runs as a whole"
        expected = f'"1f1b" or "interleaved", or {_NONE}'
        problems.append(Problem(message, key="schedule", value=strategy.schedule, expected=expected))
    if problems:
        raise InputError(problems)
