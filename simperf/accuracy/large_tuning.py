"""How published cases fine-tune: all weights, or adapters beside frozen ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simperf.workload.tuning import Adapters, BasePrecision

__all__ = ["large_adapters"]

#: method of a case -> how frozen matrices are kept
_BASES: Mapping[str, BasePrecision] = {"lora": "as-products", "qlora": "nf4"}


def large_adapters(how: Mapping[str, Any]) -> Adapters:
    """Adapters of a case; none where all weights are trained.

    Parameters
    ----------
    how : mapping
        Its `parallelism`.

    Raises
    ------
    ValueError
        A method that no job has.
    KeyError
        The rank of the adapters, or what they are beside, is not printed.

    Examples
    --------
    >>> large_adapters({"method": "qlora", "lora_rank": 8, "lora_targets": ["q", "v"]}).base
    'nf4'
    """
    method = str(how.get("method") or ("lora" if "lora" in str(how.get("task", "")).lower() else "full"))
    if method == "full":
        return Adapters()
    if method not in _BASES:
        raise ValueError(f"fine-tuning by {method}")
    for key in ("lora_rank", "lora_targets"):
        if not how.get(key):
            raise KeyError(f"parallelism.{key}")
    return Adapters(int(how["lora_rank"]), tuple(map(str, how["lora_targets"])), _BASES[method])
