"""Operations as conditions of a measurement, and back: what the fit needs to know of what was timed."""

from __future__ import annotations

from simperf.calibrate.dataset import Measurement, Value
from simperf.workload.op import Gemm, Op

__all__ = ["amounts", "op_of"]


def amounts(op: Op) -> dict[str, Value]:
    """Conditions that give `op` back.

    Parameters
    ----------
    op : Op

    Returns
    -------
    dict of str to Value
        ``kind``, ``family``, ``dtype``, ``flops`` [FLOP], ``nbytes_read`` and ``nbytes_written`` [B], ``elements``, and
        of a matrix product ``gemm_batch``, ``gemm_m``, ``gemm_n``, ``gemm_k``.

    Examples
    --------
    >>> from simperf.workload import Op
    >>> amounts(Op("y", "relu", flops=8.0, nbytes_read=32.0, nbytes_written=32.0, elements=8.0))["nbytes_read"]
    32.0
    """
    found: dict[str, Value] = {
        "kind": op.kind,
        "family": op.family,
        "dtype": op.dtype,
        "flops": op.flops,
        "nbytes_read": op.nbytes_read,
        "nbytes_written": op.nbytes_written,
        "elements": op.elements,
    }
    if op.gemm is not None:
        gemm = op.gemm
        found |= {"gemm_batch": gemm.batch, "gemm_m": gemm.m, "gemm_n": gemm.n, "gemm_k": gemm.k}
    return found


def op_of(point: Measurement) -> Op:
    """The operation that a point of ``op/...`` timed.

    Raises
    ------
    InputError
        Conditions that are missing.

    Examples
    --------
    >>> from simperf.workload.kinds import matmul
    >>> op = matmul(4, 5, k=6)
    >>> op_of(Measurement("op/gemm", amounts(op), (1e-6,))) == op
    True
    """
    at = point.at
    gemm = None
    if "gemm_m" in at:
        batch, m, n, k = (int(point.number(f"gemm_{name}")) for name in ("batch", "m", "n", "k"))
        gemm = Gemm(batch, m, n, k)
    kind = str(at.get("kind", "custom"))
    return Op(
        name=kind,
        kind=kind,
        flops=point.number("flops"),
        nbytes_read=point.number("nbytes_read"),
        nbytes_written=point.number("nbytes_written"),
        dtype=str(at.get("dtype", "fp32")),
        family=str(at.get("family", "elementwise")),
        elements=point.number("elements"),
        gemm=gemm,
    )
