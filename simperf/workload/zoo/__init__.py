"""Traced models that come with simperf; they need no torch. Transformers by their dimensions are loaded here, too."""

from __future__ import annotations

import gzip
import json
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.model import TracedModel
from simperf.workload.modelfile import built_from, read_model

if TYPE_CHECKING:
    from simperf.workload.transformers import Transformer

__all__ = ["load", "model_files", "names"]

_SUFFIXES = (".json", ".json.gz")


def model_files() -> dict[str, Path]:
    """Files of the traced models that come with simperf, by name."""
    folder = Path(__file__).parent
    found = {
        path.name.removesuffix(suffix): path
        for path in folder.iterdir()
        for suffix in _SUFFIXES
        if path.name.endswith(suffix)
    }
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    """Names of the traced models, in order."""
    return tuple(model_files())


def load(name: str | Transformer, kernels: LayerKernels | None = None) -> TracedModel:
    """Read a model of the zoo, or a file if `name` ends like one; each once, a file again when it has changed.

    A transformer by its dimensions, also one that comes with simperf, is made into a model, of the kernels of eager
    PyTorch or of `kernels`; of these a traced model takes its attention, its library and the format of its images.

    Raises
    ------
    UnknownNameError
        There is none of this name.
    InputError
        A file that is no model, kernels that a traced model does not have, or a transformer whose kernels are not
        known.

    Examples
    --------
    >>> load("lenet").parameter_count
    129068
    """
    if isinstance(name, str) and not name.endswith((*_SUFFIXES, ".toml")) and name not in model_files():
        from simperf.workload.transformers.shipped import shipped_transformers

        name = shipped_transformers().get(name, name)
    if not isinstance(name, str):
        return _by_dimensions(name, kernels or LayerKernels())
    usual = LayerKernels()
    if kernels is not None and (kernels.attention not in ("flash", "unfused") or kernels.norm != usual.norm):
        message = "a traced model brings its own kernels, but for attention that is written out"
        expected = 'attention = "unfused", or a model by its dimensions'
        raise InputError(Problem(message, key="kernels", value=str(kernels), expected=expected))
    model = _traced(name)
    return model if kernels is None or kernels == usual else _with_kernels(model, kernels)


def _traced(name: str) -> TracedModel:
    if not name.endswith((*_SUFFIXES, ".toml")):
        return _shipped(name)
    path = Path(name).absolute()
    if not path.is_file():
        return read_model(name)  # says what is there instead
    state = path.stat()
    return _own(name, str(path), state.st_mtime_ns, state.st_size)


def _with_kernels(model: TracedModel, kernels: LayerKernels) -> TracedModel:
    """A traced model whose attention is written out or a library's, or whose images are in another format."""
    families, problems = {op.family for op in model.ops}, []
    if kernels.library and "attention" not in families:
        message, expected = f"the model {model.name} has no attention in one kernel", "a model with attention"
        problems.append(Problem(message, key="attention_library", value=repr(kernels.library), expected=expected))
    if kernels.memory_format != LayerKernels().memory_format and "conv" not in families:
        message, expected = f"the model {model.name} has no convolution", "a model with convolutions"
        problems.append(Problem(message, key="memory_format", value=repr(kernels.memory_format), expected=expected))
    if problems:
        raise InputError(problems)
    if kernels.batch_norm != LayerKernels().batch_norm:
        from simperf.workload.joined_normalization import join_normalization

        model = join_normalization(model)
    if kernels.attention != LayerKernels().attention:
        from simperf.workload.written_attention import write_attention

        model = write_attention(model)
    return model.changed(kernels=kernels)


@lru_cache(maxsize=16)
def _by_dimensions(model: Transformer, kernels: LayerKernels) -> TracedModel:
    from simperf.workload.transformers.step import training_model

    return training_model(model, kernels)


@cache
def _shipped(name: str) -> TracedModel:
    """A model that comes with simperf; a test reads them all with the checks that others' files get."""
    files = model_files()
    if name not in files:
        from simperf.workload.transformers.shipped import shipped_transformers

        raise UnknownNameError("model", name, (*files, *shipped_transformers()))
    raw = files[name].read_bytes()
    return built_from(json.loads(gzip.decompress(raw) if files[name].suffix == ".gz" else raw))


@lru_cache(maxsize=64)
def _own(name: str, path: str, changed: int, size: int) -> TracedModel:
    """The model in a file, as it was when it was last changed."""
    return read_model(name)
