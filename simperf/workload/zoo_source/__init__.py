"""Sources of the zoo: the models as plain modules of torch, and the list of what is traced.

``python -m simperf.workload.zoo_source`` (or ``simperf zoo make``) traces them all again.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from simperf.errors import UnknownNameError
from simperf.workload.model import TracedModel

__all__ = ["ENTRIES", "Entry", "make", "trace_entry"]

#: files up to this size stay readable; larger ones are compressed [B]
_PLAIN = 48_000


class Entry(NamedTuple):
    """One model of the zoo: the function that makes it, what it is fed, and how it is trained."""

    function: str
    inputs: tuple[str, ...]
    loss: str
    optimizer: str
    title: str
    source: str
    sample: str


_D2L = '"Dive into Deep Learning"'
_IMAGE = ("8x3x224x224",)


def _bert(size: str, length: int, layers: int) -> Entry:
    title = f"BERT-{size}, encoder and pooler, {length} tokens a sequence"
    paper = f"J. Devlin and others, NAACL 2019 ({layers} layers); mean square of the pooled vector as loss"
    return Entry(f"bert:bert_{size}", (f"4x{length}:int64",), "mse", "adamw", title, paper, f"sequence of {length}")


def _gpt(function: str, title: str) -> Entry:
    paper = 'A. Radford and others, "Language Models are Unsupervised Multitask Learners" (2019); dropout 0.1'
    words = f"{title}, 1024 tokens a sequence"
    return Entry(f"decoders:{function}", ("2x1024:int64",), "cross-entropy", "adamw", words, paper, "sequence of 1024")


def _net(
    function: str, title: str, source: str, *, inputs: tuple[str, ...] = _IMAGE, sgd: str = "momentum-decay"
) -> Entry:
    return Entry(function, inputs, "cross-entropy", sgd, title, source, "image")


def _gnmt(function: str, title: str) -> Entry:
    paper = "Y. Wu and others, arXiv:1609.08144; NVIDIA/DeepLearningExamples, PyTorch/Translation/GNMT"
    words = f"{title}, sentences of 25 word pieces padded to 32 in each language"
    sentences = ("4x32:int64", "4x33:int64")
    return Entry(f"gnmt:{function}", sentences, "auto", "adam", words, paper, "pair of sentences padded to 32")


_SMALL = ("8x1x28x28",)

#: name -> entry
ENTRIES: dict[str, Entry] = {
    "mlp": _net(
        "vision:mlp", "Two-layer perceptron 784-256-10", f'{_D2L}, "Multilayer Perceptrons"', inputs=_SMALL, sgd="sgd"
    ),
    "lenet": _net("vision:lenet", "LeNet of the multi-GPU section", f"{_D2L}, section 12.5", inputs=_SMALL, sgd="sgd"),
    "d2l-resnet18": _net(
        "vision:d2l_resnet18",
        "Modified ResNet-18 for 28 x 28 images",
        f"{_D2L}, section 12.6",
        inputs=_SMALL,
        sgd="sgd",
    ),
    "alexnet": _net("vision:alexnet", "AlexNet (one-tower)", "A. Krizhevsky, arXiv:1404.5997"),
    "vgg16": _net("vision:vgg16", "VGG-16", "K. Simonyan and A. Zisserman, ICLR 2015"),
    "resnet18": _net("resnet:resnet18", "ResNet-18", "K. He and others, CVPR 2016"),
    "resnet34": _net("resnet:resnet34", "ResNet-34", "K. He and others, CVPR 2016"),
    "resnet50": _net(
        "resnet:resnet50", "ResNet-50 v1.5", "K. He and others, CVPR 2016; stride in the 3 x 3 convolution"
    ),
    "resnet101": _net(
        "resnet:resnet101", "ResNet-101 v1.5", "K. He and others, CVPR 2016; stride in the 3 x 3 convolution"
    ),
    "resnet152": _net(
        "resnet:resnet152", "ResNet-152 v1.5", "K. He and others, CVPR 2016; stride in the 3 x 3 convolution"
    ),
    "resnext50": _net("resnet:resnext50", "ResNeXt-50 32x4d", "S. Xie and others, CVPR 2017"),
    "resnext101": _net("resnet:resnext101", "ResNeXt-101 32x8d", "S. Xie and others, CVPR 2017"),
    "bert-base": _bert("base", 512, 12),
    "bert-base-128": _bert("base", 128, 12),
    "bert-large": _bert("large", 512, 24),
    "bert-large-128": _bert("large", 128, 24),
    "bert-large-288": _bert("large", 288, 24),
    "bert-large-384": _bert("large", 384, 24),
    "bert-base-384": _bert("base", 384, 12),
    "gpt2": _gpt("gpt2", "GPT-2 small"),
    "gpt2-medium": _gpt("gpt2_medium", "GPT-2 medium"),
    "gpt2-large": _gpt("gpt2_large", "GPT-2 large"),
    "gpt2-xl": _gpt("gpt2_xl", "GPT-2 XL"),
    "llama2-7b": Entry(
        "decoders:llama2_7b",
        ("2x4096:int64",),
        "cross-entropy",
        "adamw",
        "Llama-2-7B, 4096 tokens a sequence",
        'H. Touvron and others, "Llama 2", arXiv:2307.09288',
        "sequence of 4096",
    ),
    "gnmt": _gnmt("gnmt", "GNMT v2"),
    "gnmt-padded": _gnmt("gnmt_padded", "GNMT v2, vocabulary padded to 31,800"),
    "ssd300": Entry(
        "ssd:ssd300",
        ("8x3x300x300", "8x4x8732", "8x8732:int64"),
        "auto",
        "momentum-decay",
        "SSD300 with a ResNet-50",
        "W. Liu and others, ECCV 2016; NVIDIA/DeepLearningExamples, PyTorch/Detection/SSD",
        "image",
    ),
    "tacotron2": Entry(
        "tacotron:tacotron2",
        ("4x6:int64", "4x80x29"),
        "auto",
        "adam",
        "Tacotron 2, a thirtieth of a clip: 29 frames, 6 of 180 letters",
        "J. Shen and others, ICASSP 2018; NVIDIA/DeepLearningExamples, PyTorch/SpeechSynthesis/Tacotron2",
        "segment of 29 frames",
    ),
    "waveglow": Entry(
        "waveglow:waveglow",
        ("4x80x32", "4x8000"),
        "auto",
        "adam",
        "WaveGlow with 512 channels, segments of 8,000 samples",
        "R. Prenger and others, ICASSP 2019; NVIDIA/DeepLearningExamples, PyTorch/SpeechSynthesis/Tacotron2",
        "segment of 8000",
    ),
}


def trace_entry(name: str) -> TracedModel:
    """Trace one model of the list.

    Raises
    ------
    UnknownNameError
        It is not in the list.
    SimperfError
        Torch is not installed.
    """
    if name not in ENTRIES:
        raise UnknownNameError("model", name, ENTRIES)
    from simperf.workload.trace import require_torch, trace_model

    require_torch()
    entry = ENTRIES[name]
    module, _, function = entry.function.partition(":")
    return trace_model(
        getattr(import_module(f"{__name__}.{module}"), function),
        entry.inputs,
        loss=entry.loss,
        optimizer=entry.optimizer,
        name=name,
        title=entry.title,
        source=entry.source,
        sample=entry.sample,
    )


def make(names: Sequence[str], folder: Path) -> list[Path]:
    """Trace models and write them to a folder, large ones compressed; returns the files."""
    from simperf.workload.modelfile import write_model

    written = []
    for name in names:
        model = trace_entry(name)
        plain = folder / f"{name}.json"
        write_model(model, plain)
        if plain.stat().st_size > _PLAIN:
            plain.unlink()
            plain = folder / f"{name}.json.gz"
            write_model(model, plain)
        written.append(plain)
    return written
