"""Features of a program that published cases name in words: what they change of its model and of its exchanges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simperf.workload.transformers.dimensions import Transformer

__all__ = ["OVERLAPS", "features_of", "model_with_features"]

#: exchanges that run beside passes: of tensor, pipeline and data parallelism
OVERLAPS = ("TP overlap", "PP overlap", "DP overlap")
_BLOCK, _WINDOW = "parallel block", "sliding window"


def features_of(how: Mapping[str, Any]) -> frozenset[str]:
    """Features of a case that are simulated.

    Parameters
    ----------
    how : mapping
        Its `parallelism`, whose `features` are words behind commas.

    Examples
    --------
    >>> sorted(features_of({"features": "parallel block, TP/DP overlap, LAMB"}))
    ['DP overlap', 'TP overlap', 'parallel block']
    """
    found = set[str]()
    for word in str(how.get("features") or "").split(","):
        text = word.strip()
        if text in (_BLOCK, _WINDOW):
            found.add(text)
        elif overlap := re.fullmatch(r"((?:[TPD]P/)*[TPD]P) overlap", text):
            found |= {f"{one} overlap" for one in overlap[1].split("/")}
    return frozenset(found)


def model_with_features(model: Transformer, how: Mapping[str, Any], assumed: list[str]) -> Transformer:
    """A model with the features that its case names.

    Parameters
    ----------
    model : Transformer
    how : mapping
        `parallelism` of the case.
    assumed : list of str
        Gets what is assumed.

    Raises
    ------
    KeyError
        A window whose length is not printed.
    """
    features = features_of(how)
    if _WINDOW in features:
        if not how.get("window"):
            raise KeyError("parallelism.window")
        model = replace(model, window=int(how["window"]), window_layers=model.layers)
    if "LAMB" in str(how.get("features") or ""):
        assumed.append("Adam in the place of LAMB")
    return replace(model, parallel_block=True) if _BLOCK in features else model
