"""A layout: how a model and its mini-batch are divided among ranks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from simperf.errors import InputError, Problem, nearest, nearest_divisors
from simperf.layout.mesh import Mesh

__all__ = ["DIMENSIONS", "DIMENSION_WORDS", "SHARDINGS", "Dimension", "Layout", "Sharding"]

Dimension = Literal["tp", "cp", "ep", "dp", "pp"]
Sharding = Literal["none", "zero-1", "zero-2", "zero-3"]

#: dimensions of parallelism in Megatron-LM's default order of ranks, the innermost first
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

#: dimensions along which ranks communicate, those of the experts too, by the words that metrics and streams have
DIMENSION_WORDS = {
    "tp": "tensor",
    "cp": "context",
    "ep": "expert",
    "etp": "expert tensor",
    "pp": "pipeline",
    "dp": "data",
    "edp": "expert data",
}

#: what data-parallel ranks keep a part of instead of a copy: nothing; optimizer states; and gradients; and weights
SHARDINGS: tuple[Sharding, ...] = get_args(Sharding)

#: dimension of the experts -> of their mesh
_OF_EXPERTS = {"ep": "ep", "etp": "tp", "edp": "dp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A division of a model and its mini-batch among ranks; plain data parallelism over n ranks is ``Layout(dp=n)``.

    The layout has dp x tp x pp x cp ranks. Expert parallelism adds none, as in Megatron-LM: of the dp x cp x tp ranks
    of a stage, ep x etp have all experts of a layer together, and the others have copies of them.

    Parameters
    ----------
    dp : int
        Data parallelism: replicas, each with its share of the mini-batch.
    tp : int
        Tensor parallelism: ranks that share each matrix product.
    pp : int
        Pipeline parallelism: stages that the layers are cut into.
    cp : int
        Context parallelism: ranks that share each sequence.
    ep : int
        Expert parallelism: ranks that the experts of a layer are spread over.
    etp : int
        Tensor parallelism of the experts: ranks that share each expert's matrices; 0 for `tp`.
    sharding : str
        ``"none"``: every data-parallel rank has a whole copy. ``"zero-1"``, ``"zero-2"``, ``"zero-3"``: it keeps a part
        of the optimizer states; of gradients too; of weights too (fully sharded data parallelism). Rajbhandari et al.,
        "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020.
    dp_replicate : int
        Copies of what `sharding` divides: dp / dp_replicate neighbouring data-parallel ranks share one (hybrid sharded
        data parallelism).
    order : tuple of str
        All of `DIMENSIONS`, that of neighbouring ranks first; Megatron-LM's ``tp-cp-ep-dp-pp`` if left out.

    Raises
    ------
    InputError
        All sizes below 1, an `ep` that does not divide dp x cp x tp / etp, sharding over one rank, copies that do not
        divide dp, an unknown sharding, or an order that is none of all dimensions.

    Examples
    --------
    >>> layout = Layout(dp=2, tp=4, pp=2)
    >>> layout.ranks, layout.mesh.coordinates(9)
    (16, {'tp': 1, 'cp': 0, 'dp': 0, 'pp': 1})
    >>> layout.mesh.groups("tp")[0], layout.mesh.groups("dp")[0]
    ((0, 1, 2, 3), (0, 4))
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 0
    sharding: Sharding = "none"
    dp_replicate: int = 1
    order: tuple[Dimension, ...] = DIMENSIONS

    def __post_init__(self) -> None:
        problems = [
            Problem("a whole number of ranks, 1 or more, is expected", key=name, value=repr(size))
            for name in (*DIMENSIONS, "dp_replicate")
            if isinstance(size := getattr(self, name), bool) or not isinstance(size, int) or size < 1
        ]
        if isinstance(self.etp, bool) or not isinstance(self.etp, int) or self.etp < 0:
            message = "a whole number of ranks is expected, or 0 for as many as tp"
            problems.append(Problem(message, key="etp", value=repr(self.etp)))
        if self.sharding not in SHARDINGS:
            message = f"no such sharding{nearest(str(self.sharding), SHARDINGS)}"
            problems.append(Problem(message, key="sharding", value=str(self.sharding), expected=", ".join(SHARDINGS)))
        names = [str(one) for one in self.order] if isinstance(self.order, tuple | list) else [str(self.order)]
        if sorted(names) != sorted(DIMENSIONS):
            expected = f"each of {', '.join(DIMENSIONS)} once, such as {'-'.join(DIMENSIONS)}"
            message = "not an order of dimensions"
            problems.append(Problem(message, key="order", value="-".join(names), expected=expected))
        if not problems:
            shared = self.dp * self.cp
            problems += self._of_experts()
            if self.sharding != "none" and shared == 1:
                message = "has no effect: there is one data-parallel rank, which keeps everything"
                problems.append(Problem(message, key="sharding", value=self.sharding, expected="none, or dp above 1"))
            problems += self._of_copies()
        if problems:
            raise InputError(problems)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def mesh(self) -> Mesh:
        """Ranks by tensor, context, data and pipeline parallelism: what the layers without experts are divided by."""
        names = tuple(name for name in self.order if name != "ep")
        return Mesh(names, tuple(getattr(self, name) for name in names))

    @property
    def dp_shard(self) -> int:
        """Data-parallel ranks that share one copy of what `sharding` divides."""
        return self.dp // self.dp_replicate

    @property
    def sharding_mesh(self) -> Mesh:
        """The ranks of `mesh` with ``"dp_shard"`` and ``"dp_replicate"`` in place of ``"dp"``.

        Examples
        --------
        >>> mesh = Layout(dp=4, sharding="zero-3", dp_replicate=2).sharding_mesh
        >>> mesh.groups("dp_shard"), mesh.groups("dp_replicate")
        (((0, 1), (2, 3)), ((0, 2), (1, 3)))
        """
        names: list[str] = []
        for name in self.mesh.dimensions:
            names += ["dp_shard", "dp_replicate"] if name == "dp" else [name]
        return Mesh(tuple(names), tuple(getattr(self, name) for name in names))

    @property
    def expert_sharding_mesh(self) -> Mesh:
        """The ranks of `expert_mesh` with ``"dp_shard"`` and ``"dp_replicate"`` in place of ``"dp"``.

        Examples
        --------
        >>> mesh = Layout(dp=8, ep=2, sharding="zero-3", dp_replicate=2).expert_sharding_mesh
        >>> mesh.groups("dp_shard"), mesh.groups("dp_replicate")
        (((0, 2), (1, 3), (4, 6), (5, 7)), ((0, 4), (1, 5), (2, 6), (3, 7)))
        """
        whole, names, sizes = self.expert_mesh, list[str](), list[int]()
        for name, size in zip(whole.dimensions, whole.sizes, strict=True):
            names += ["dp_shard", "dp_replicate"] if name == "dp" else [name]
            sizes += [self.expert_dp_shard, self.dp_replicate] if name == "dp" else [size]
        return Mesh(tuple(names), tuple(sizes))

    def _of_copies(self) -> list[Problem]:
        """Problems of the number of copies."""
        copies, key = self.dp_replicate, "dp_replicate"
        if self.dp % copies:
            expected = " or ".join(map(str, nearest_divisors(self.dp, copies)))
            return [Problem(f"does not divide dp = {self.dp}", key=key, value=str(copies), expected=expected)]
        if copies > 1 and self.sharding == "none":
            message = "has no effect: every data-parallel rank has a copy"
            return [Problem(message, key=key, value=str(copies), expected='1, or sharding = "zero-3"')]
        if copies > 1 and self.dp_shard * self.cp == 1:
            message = "no rank is left to share a copy with"
            expected = f'less than {self.dp}, or sharding = "none"'
            return [Problem(message, key=key, value=str(copies), expected=expected)]
        if self.spreads_experts and self.expert_dp % copies:
            message = f"does not divide the {self.expert_dp} ranks that have copies of an expert"
            near = nearest_divisors(self.expert_dp, copies, where=lambda one: self.dp % one == 0)
            expected = " or ".join(map(str, near))
            return [Problem(message, key=key, value=str(copies), expected=expected)]
        return []

    @property
    def expert_mesh(self) -> Mesh:
        """Ranks by tensor, expert, data and pipeline parallelism: what the experts are divided by.

        Its ``tp`` counts the ranks that share an expert, and its ``dp`` the copies of an expert, dp x cp x tp / (ep x
        etp).
        """
        sizes = {"tp": self.expert_tp, "ep": self.ep, "dp": self.expert_dp, "pp": self.pp}
        names = tuple(name for name in self.order if name != "cp")
        return Mesh(names, tuple(sizes[name] for name in names))

    @property
    def expert_tp(self) -> int:
        """Ranks that share each expert's matrices."""
        return self.etp or self.tp

    @property
    def spreads_experts(self) -> bool:
        """Whether ranks have different experts, or parts of them other than of all matrices."""
        return self.ep > 1 or self.expert_tp != self.tp

    @property
    def expert_dp(self) -> int:
        """Copies of each expert."""
        return self.dp * self.cp * self.tp // (self.ep * self.expert_tp)

    @property
    def expert_dp_shard(self) -> int:
        """Ranks that share one copy of what `sharding` divides of an expert."""
        return self.expert_dp // self.dp_replicate

    def groups(self, dimension: str) -> tuple[tuple[int, ...], ...]:
        """Process groups along a dimension; ``"etp"`` and ``"edp"`` are tensor and data parallelism of the experts.

        Examples
        --------
        >>> layout = Layout(dp=4, tp=2, ep=4, etp=1)
        >>> layout.groups("ep")[0], layout.groups("edp")[0], layout.groups("tp")[0]
        ((0, 1, 2, 3), (0, 4), (0, 1))
        """
        if dimension in _OF_EXPERTS:
            return self.expert_mesh.groups(_OF_EXPERTS[dimension])
        return self.mesh.groups(dimension)

    def _of_experts(self) -> list[Problem]:
        """Problems of experts that cannot be spread over the ranks of a stage."""
        shared, what = self.dp * self.cp * self.tp, "dp x cp x tp"
        if shared % self.expert_tp:
            message = f"an expert's matrices are shared inside groups of {what} = {shared} ranks"
            expected = " or ".join(map(str, nearest_divisors(shared, self.expert_tp)))
            return [Problem(message, key="etp", value=str(self.etp), expected=expected)]
        copies = shared // self.expert_tp
        if copies % self.ep:
            what = "dp x cp" if self.expert_tp == self.tp else f"{what} / etp"
            message = f"experts are spread over groups of {what} = {copies} ranks, which {self.ep} does not divide"
            near = " or ".join(f"ep = {one}" for one in nearest_divisors(copies, self.ep))
            expected = f"{near}, of which the number of experts is a multiple"
            return [Problem(message, key="ep", value=str(self.ep), expected=expected)]
        return []

    @property
    def replicated(self) -> bool:
        """Whether it is data parallelism with a whole copy on every rank and nothing else."""
        return self.ranks == self.dp and self.ep == 1 and self.sharding == "none"

    def fewer(self, devices: int) -> str:
        """Layouts that so many devices can hold where they are fewer than the ranks, for a message."""
        copies = devices // (self.ranks // self.dp)
        return f"at most {devices} ranks" + (f", such as dp = {copies}" if copies else "")

    def over(self, ranks: int, *, what: str = "GPUs") -> Layout:
        """The layout itself, if it has so many ranks.

        Parameters
        ----------
        ranks : int
        what : str
            What the ranks are, for the message.

        Raises
        ------
        InputError
            It has another number of ranks; says which `dp` would give this one, if one does.
        """
        if self.ranks == ranks:
            return self
        parts = [f"{name} = {size}" for name in ("dp", "tp", "pp", "cp") if (size := getattr(self, name)) > 1]
        model = self.ranks // self.dp
        copies, rest = divmod(ranks, model)
        nearby = " or ".join(str(model * count) for count in (copies, copies + 1) if count)
        expected = f"dp = {copies}" if not rest else f"{nearby} {what}"
        message = f"the layout has {self.ranks} ranks ({' x '.join(parts) or 'all sizes 1'}) for {ranks} {what}"
        raise InputError(Problem(message, key="dp", value=str(self.dp), expected=expected))

    def __str__(self) -> str:
        parts = [f"{one.name}={getattr(self, one.name)}" for one in fields(self)[:5] if getattr(self, one.name) > 1]
        parts += [f"etp={self.etp}"] if self.etp else []
        copies = [f"dp_replicate={self.dp_replicate}"] if self.dp_replicate > 1 else []
        return " ".join([*(parts or ["dp=1"]), *([self.sharding] if self.sharding != "none" else []), *copies])
