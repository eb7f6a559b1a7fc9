"""Functions that a GPU runs as one kernel, but that fall apart on the meta device: kept whole here."""

from __future__ import annotations

from typing import Any

__all__ = ["fused_functions"]


def fused_functions(notes: dict[str, None]) -> Any:
    """A mode under which attention, dropout, an LSTM's layer and its cell are kept whole, forward and backward.

    Parameters
    ----------
    notes : dict
        Takes what had to be left out, as keys.
    """
    import torch
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode

    from simperf.workload.trace.cell import lstm_cell
    from simperf.workload.trace.recurrent import lstm

    aten = torch.ops.aten

    def attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if attn_mask is not None:
            notes["the mask of attention is not counted: as much work as without it"] = None
        if enable_gqa and key.shape[-3] != query.shape[-3]:
            repeats = query.shape[-3] // key.shape[-3]
            key, value = (t.repeat_interleave(repeats, -3) for t in (key, value))
        call = aten._scaled_dot_product_flash_attention.default
        found = call(flat(query), flat(key), flat(value), dropout_p, is_causal, scale=scale)[0]
        return found.reshape(*query.shape[:-1], value.shape[-1])

    def flat(x: Any) -> Any:
        """As (batch, heads, length, width), whatever stands before length and width."""
        return x.reshape(-1, *x.shape[-3:]) if x.dim() > 2 else x[None, None]

    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or p == 0.0:
            return input
        return aten.native_dropout.default(input, p, True)[0]

    table = {
        functional.scaled_dot_product_attention: attention,
        functional.dropout: dropout,
        torch.lstm: lstm(notes, torch.lstm),
        torch.lstm_cell: lstm_cell(torch.lstm_cell),
    }

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return table.get(func, func)(*args, **(kwargs or {}))

    return Mode()
