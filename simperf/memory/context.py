"""Memory that no tensor holds: workspaces of libraries, the driver's context, and buffers of communicators.

Workspaces come out of PyTorch's allocator and count as allocated; contexts and buffers do not: only the driver's total
has them.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["DRIVER", "communicator_buffers", "workspace"]

#: context of the driver and kernels that a process loads as it needs them (CUDA 11.7 and newer; older ones load all and
#: take more than 1 GB): pytorch/pytorch, issue 107667 [B]
DRIVER = 300e6
#: what NCCL allocates for a channel of a ring: at the receiver buffers of 4 MiB (Simple), 4.7 MiB (LL128) and 0.5 MiB
#: (LL), at the sender less, each rounded up to 2 MiB: NVIDIA/nccl, src/init.cc, and issue 1685, which counts them [B]
_RECEIVER, _SENDER = 10 << 20, 2 << 20
_MATRIX_GENERATIONS = ("hopper", "blackwell")


def workspace(library: Literal["torch", "transformer-engine"], architecture: str) -> float:
    """Workspace that a library keeps for its matrix products on a stream [B].

    Parameters
    ----------
    library : str
        ``"torch"`` (cuBLAS's products in PyTorch itself) or ``"transformer-engine"``.
    architecture : str
        Of the GPU, such as ``"hopper"``; 32 MiB on Hopper and Blackwell, less on any other.

    Sources: pytorch/pytorch, aten/src/ATen/cuda/CublasHandlePool.cpp (`CUBLAS_WORKSPACE_CONFIG` by default);
    NVIDIA/TransformerEngine, transformer_engine/pytorch/module/base.py (`get_cublas_workspace_size_bytes`).

    Examples
    --------
    >>> workspace("torch", "ampere") / 2**20, workspace("transformer-engine", "hopper") / 2**20
    (8.125, 32.0)
    """
    if architecture in _MATRIX_GENERATIONS:
        return float(32 << 20)
    return float(8320 << 10) if library == "torch" else float(4 << 20)


def communicator_buffers(channels: int) -> float:
    """Buffers of a communicator of rings [B].

    Parameters
    ----------
    channels : int
        Channels of its rings, each with a buffer at the receiver and at the sender.

    Examples
    --------
    >>> communicator_buffers(24) / 2**20
    288.0
    """
    return float(channels * (_RECEIVER + _SENDER))
