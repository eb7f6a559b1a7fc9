"""The set ``training``: kernels of training steps of transformers, in an order of which any beginning is of use.

Series beside those of `simperf.calibrate.measure`, whose names and conditions the kernels here have too:

``op/gemm``
    `pass`: ``"forward"``, ``"dgrad"``, ``"wgrad"``, and `layout`, which factor lies transposed in memory
    (``"nt"``, ``"nn"``, ``"tn"``). `cache`: ``"cold"``, operands take turns that are together larger than twice the
    last cache, or ``"warm"``, the same ones again and again.
``op/attention``
    The flash kernel alone: `heads`, `kv_heads`, `length`, `width`, `causal`.
``launch/chain``
    From the first to the last of `kernels` queued kernels over `elements`.
``sustained/gemm``
    One product again and again for seconds; its readings in order show how far the clock falls.
``loss/cross-entropy``, ``update/adamw``, ``update/clip``, ``layer/gpt``
    Several kernels as torch runs them: `pass`, `mode`, and `part`: ``"device"`` or ``"host"``. No constant is fitted
    to them.
"""

from simperf.calibrate.measure.training.order import FAMILIES, in_turns, interleaved, training_tasks

__all__ = ["FAMILIES", "in_turns", "interleaved", "training_tasks"]
