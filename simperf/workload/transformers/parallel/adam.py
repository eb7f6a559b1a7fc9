"""The update of a rank's weights by Adam: its kernels, and what it holds beside gradients and states."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simperf.workload.op import Op
from simperf.workload.precision import SINGLE
from simperf.workload.product_recipe import ProductRecipe
from simperf.workload.transformers.parallel.casts import cast_kernels
from simperf.workload.transformers.parallel.operations import each

__all__ = ["MOMENTS", "AdamUpdate"]

#: states that Adam keeps of each weight: the means of its gradient and of the square
MOMENTS = 2

#: arithmetic of Adam with decay of weights for each weight [FLOP]
_ADAM = 21.0
#: kernels of PyTorch's foreach implementation of AdamW (torch/optim/adamw.py, `_multi_tensor_adamw`): name, kind, FLOP,
#: bytes read and written of each weight, family
_FOREACH: tuple[tuple[str, str, float, float, float, str], ...] = (
    ("adam.decay", "mul", 1.0, SINGLE, SINGLE, "elementwise"),
    ("adam.mean", "lerp", 3.0, 2 * SINGLE, SINGLE, "elementwise"),
    ("adam.square.mul", "mul", 1.0, SINGLE, SINGLE, "elementwise"),
    ("adam.square.add", "addcmul", 3.0, 2 * SINGLE, SINGLE, "elementwise"),
    ("adam.root", "sqrt", 1.0, SINGLE, SINGLE, "elementwise"),
    ("adam.root.div", "div", 1.0, SINGLE, SINGLE, "elementwise"),
    ("adam.root.add", "add", 1.0, SINGLE, SINGLE, "elementwise"),
    ("adam.step", "addcdiv", 3.0, 3 * SINGLE, SINGLE, "elementwise"),
)
#: tensors that the update by a kernel for each operation has made at a time, of all weights: roots of squares, which
#: the foreach implementation makes in place (``torch._foreach_sqrt``); over one tensor the quotient that follows is
#: another tensor (PyTorch 1.13, `_single_tensor_adamw`)
_MADE = {"foreach": 1, "joined-unfused": 2}


@dataclass(frozen=True, slots=True)
class AdamUpdate:
    """Adam over the weights that a rank owns, and what goes before and behind it.

    Parameters
    ----------
    kind : str
        Which kernels it is, as `simperf.workload.layer_kernels.LayerKernels` has it.
    weight, gradient, state : float
        Bytes of an element: the weight; its gradient, added up over micro-batches; what the optimizer keeps, with a
        copy of the weight in fp32 where weights are narrower [B].
    precision : str
        Of weights.
    recipe : ProductRecipe, optional
        Of products in 8 or 4 bits.
    """

    kind: str
    weight: float
    gradient: float
    state: float
    precision: str
    recipe: ProductRecipe | None = None

    def kernels(self, elements: int, *, copies: bool = True, scaled: int = 0) -> tuple[Op, ...]:
        """Kernels over so many weights.

        Gradients narrower than fp32 are copied to fp32; with fp16 they are divided by the scale of the loss and checked
        (NVIDIA/Megatron-LM at 23e00ed0, megatron/core/optimizer/optimizer.py). Adam is one kernel over all weights, or
        one for each operation; weights narrower than fp32 are copied from those that it has updated.

        Parameters
        ----------
        elements : int
            With optimizer states divided over data-parallel ranks the part of one.
        copies : bool
            Whether weights are copied from those in fp32 now, not when they are gathered.
        scaled : int
            How many of them are gathered as narrow as their products are: they are cast instead, or when they are
            gathered, by a factor that is found now.
        """
        weights, gradients, pure = self.weight, self.gradient, self._pure
        copied = [("gradients.join", gradients)] * self.joins
        copied += [("gradients.copy", SINGLE)] * (gradients < SINGLE and not pure)
        steps = [(name, "copy", 0.0, gradients, written, "copy") for name, written in copied]
        if self.precision == "fp16":
            steps.append(("gradients.unscale", "mul", 2.0, SINGLE, SINGLE, "elementwise"))
        apiece = self.kind not in ("fused", "joined")
        steps += _FOREACH if apiece else [("adam", "adam", _ADAM, 4 * SINGLE, 3 * SINGLE, "optimizer")]
        if pure:
            steps = [(*one[:3], one[3] * weights / SINGLE, one[4] * weights / SINGLE, one[5]) for one in steps]
        if weights < SINGLE and copies and not pure:
            steps.append(("weights.copy", "copy", 0.0, SINGLE, weights, "copy"))
        found = [
            replace(
                each(
                    kind,
                    elements - (scaled if name == "weights.copy" else 0),
                    flops=flops,
                    read=read,
                    written=written,
                    dtype="fp32",
                    family=family,
                ),
                name=name,
            )
            for name, kind, flops, read, written, family in steps
        ]
        if scaled and self.recipe is not None:
            casts = cast_kernels(self.recipe, scaled, "weights.narrow", "fp32")
            found += casts if copies else casts[:-1]
        return tuple(found)

    def temporary(self, elements: float, largest: float, *, cast_apart: bool = False) -> float:
        """Most that the update holds at a time beside gradients and states [B].

        Parameters
        ----------
        elements : float
            That the rank updates.
        largest : float
            Of them, those of the largest tensor.
        cast_apart : bool
            Whether gradients narrower than fp32 are copied one by one, and gone when they are: that they are joined
            copies all of them.

        Examples
        --------
        Gradients in bf16 are copied to fp32; where each is gone then, the copy takes 2 bytes more than it did.

        >>> update = AdamUpdate("fused", 2.0, 2.0, 12.0, "bf16")
        >>> update.temporary(10, 4), update.temporary(10, 4, cast_apart=True)
        (40.0, 20.0)
        """
        gone = self.gradient if self.gradient < SINGLE and cast_apart and not self.joins else 0.0
        apiece = _MADE["joined-unfused"] * self._wide * largest if self.kind == "unfused" else 0.0
        return elements * (self._width - gone) + apiece

    def joined(self, elements: float) -> tuple[float, ...]:
        """Sizes of the tensors that the update makes of joined gradients [B]; none if it joins none.

        Examples
        --------
        Narrow ones, their copy in fp32, a root and a quotient:

        >>> AdamUpdate("joined-unfused", 2.0, 2.0, 12.0, "bf16").joined(10)
        (20.0, 40.0, 40.0, 40.0)
        """
        if not self.joins:
            return ()
        return (elements * self.gradient, *[elements * self._wide] * (1 + _MADE.get(self.kind, 0)))

    @property
    def joins(self) -> bool:
        """Whether it joins gradients: those that are as wide as the states are not copied at all."""
        return self.kind.startswith("joined") and self.gradient < SINGLE and not self._pure

    @property
    def _pure(self) -> bool:
        """Whether states are as narrow as weights."""
        return self.state < MOMENTS * SINGLE

    @property
    def _wide(self) -> float:
        """Bytes of an element as it is updated [B]."""
        return min(float(SINGLE), self.state / MOMENTS)

    @property
    def _width(self) -> float:
        """Bytes of an element of what is there for all weights at a time [B]."""
        wide = self._wide
        return (wide if self.gradient < wide else 0.0) + _MADE.get(self.kind, 0) * wide
