"""Precision of a candidate: the plan's, or in what frameworks compute products of fp32 tensors on its GPU.

TensorFlow multiplies fp32 tensors in TF32 from Ampere on (`tf.config.experimental.enable_tensor_float_32_execution`:
"enabled by default"). So do convolutions of PyTorch (`torch.backends.cudnn.allow_tf32`, True) and, in releases 1.7 to
1.11, matrix products; from 1.12 on programs allow them (`torch.backends.cuda.matmul.allow_tf32`, False; PyTorch
documentation, "TensorFloat-32 (TF32) on Ampere (and later) devices"). Mixed precision changes the program: it is never
assumed. Tensors stay fp32, and memory is that of fp32.
"""

from __future__ import annotations

from simperf.hardware.processors import GpuPart

__all__ = ["ASSUMED", "AUTO", "GIVEN", "lacks_peak", "precision_of", "precision_source"]

#: a plan's precision where it names none
AUTO = "auto"
_FP32 = "fp32"
#: where a candidate's precision is from
GIVEN, ASSUMED = "given", "assumed: products of fp32 tensors as frameworks compute them on this GPU"


def precision_of(asked: str, part: GpuPart) -> str:
    """The precision that a candidate trains in; ``"auto"`` is fp32 on a GPU without a peak of TF32 products.

    Parameters
    ----------
    asked : str
        The plan's: a key of `simperf.workload.mixed.TRAINING_PRECISIONS`, or ``"auto"``.
    part : GpuPart

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> catalog = Catalog.load()
    >>> [precision_of("auto", catalog.gpu(name)) for name in ("v100-sxm2-32gb", "a100-sxm4-80gb")]
    ['fp32', 'tf32']
    >>> precision_of("fp16", catalog.gpu("a100-sxm4-80gb"))
    'fp16'
    """
    if asked != AUTO:
        return asked
    return _FP32 if lacks_peak(part) else part.fp32_products


def lacks_peak(part: GpuPart) -> bool:
    """Whether a GPU's file gives no peak of what its architecture computes products of fp32 tensors in."""
    return part.fp32_products not in part.peak


def precision_source(asked: str) -> str:
    """Source of a candidate's precision, in words: ``GIVEN`` or ``ASSUMED``."""
    return ASSUMED if asked == AUTO else GIVEN
