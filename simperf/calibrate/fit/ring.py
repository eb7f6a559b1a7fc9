"""NCCL's ring all-reduce: an efficiency that grows with the ranks, and why.

A ring of n ranks cuts the payload S into n chunks a channel and passes each on 2 (n - 1) times. Measured times are
longer than 2 (n - 1)/n S / B, and the excess shrinks with n: 18 % for two ranks, 4 % for six. Tables with every MiB
show why:

- *A chunk that is copied locally.* The last of the 2 n - 1 primitives of a loop receives and sends nothing, so that the
  link rests while a chunk goes through the memory of the device. It costs `local` of a step, whatever n, so that the
  busbw is B 2 (n - 1) / (2 (n - 1) + local). (The time S local / (n B) is that of a copy of S / n on the device.)
- *Loops.* A channel takes at most 2 MiB a chunk (half of NCCL_BUFFSIZE's 4 MiB), so that channels x n x 2 MiB make a
  loop; each further loop starts with small slices, and the times jump at its multiples.

Steps whose chunks outgrow what the cache keeps in flight take `spill` longer. Launching from Python takes `dispatch` a
call, and hides whatever the device does in that time: calls cannot follow each other faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Constant, Data, Model

__all__ = ["CHUNK", "ring_model"]

#: largest chunk of one channel: half of NCCL_BUFFSIZE (4 MiB) [B]
CHUNK = 2.0 * 2**20
#: chunk at which the start of a further loop is hidden behind its first bytes [B]
_RAMP = 256.0 * 1024
_CORNER = 16.0


def ring_model(name: str, title: str, *, lanes: int = 24, spill: bool = True, dispatch: bool = False) -> Model:
    """Time of a ring all-reduce over payload (`nbytes`) and `ranks`.

    Parameters
    ----------
    name, title : str
    lanes : int
        Channels of NCCL: 24 on NVSwitch with third-generation NVLink (loops of 48 n MiB in the tables).
    spill : bool
        Fit what steps of large chunks cost more, and what starting a further loop does. Tables that end below one
        loop do not show it.
    dispatch : bool
        Fit the time of the host for one call.
    """

    def ring(values: Mapping[str, float], columns: Columns) -> Array:
        size, ranks = columns["nbytes"], columns["ranks"]
        steps = 2.0 * (ranks - 1.0)
        channels = values["channels"]
        loop = channels * ranks * CHUNK
        full = np.ceil(size / loop) - 1.0
        last = (size - full * loop) / (channels * ranks)
        time = values["start"] + values["hop"] * steps
        time = time + (steps + values["local"]) * size / ranks / values["bandwidth"]
        if "spill" in values:
            first = np.where(full > 0, CHUNK, last)
            time = time + steps * values["spill"] / (1.0 + (values["kept"] / first) ** 4)
            time = time + np.where(full > 0, steps * values["loop"] * np.exp(-last / _RAMP), 0.0)
        if "dispatch" in values:
            host = values["dispatch"]
            longer, shorter = np.maximum(time, host), np.minimum(time, host)
            time = longer * (1.0 + (shorter / longer) ** _CORNER) ** (1.0 / _CORNER)
        return np.asarray(time)

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        share = 2.0 * (1.0 - 1.0 / data.columns["ranks"])
        rate = share * data.columns["nbytes"] / data.measured
        return [{"bandwidth": 1.1 * float(rate.max()), "dispatch": float(np.quantile(data.measured, 0.1))}]

    constants = [
        Constant("bandwidth", 2e11, low=1e6, high=1e14, unit="B/s"),
        Constant("local", 0.4, high=4.0, unit="1"),
        Constant("start", 2e-5, high=1.0),
        Constant("hop", 2e-6, high=1e-2),
    ]
    if spill:
        constants += [
            Constant("spill", 9e-6, high=1e-2),
            Constant("kept", 800e3, low=1e4, high=CHUNK, unit="B"),
            Constant("loop", 8e-6, high=1e-2),
        ]
    if dispatch:
        constants.append(Constant("dispatch", 4e-5, low=1e-7, high=1.0))
    return Model(name, title, tuple(constants), ring, {"channels": float(lanes)}, starts, ("nbytes", "ranks"))
