"""Whole training steps of models of the zoo, in real torch: held out, to be predicted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import doubts
from simperf.calibrate.measure.task import Family, Task
from simperf.calibrate.measure.update import trained_by

__all__ = ["MODELS", "family"]

#: model -> batches on a CPU and on a GPU
MODELS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "lenet": ((32, 128, 512), (256, 1024, 4096)),
    "d2l-resnet18": ((4, 16), (64, 256)),
    "resnet18": ((2, 8, 16), (32, 128, 256)),
    "bert-base-128": ((1, 2, 4), (16, 64)),
}
_QUICK = ("lenet", "resnet18")
PARTS = ("step", "forward", "backward", "update")


class Trainer:
    """A model, its data and its optimizer, as the zoo has them.

    Parameters
    ----------
    bench : Bench
    name : str
    batch : int
    """

    def __init__(self, bench: Bench, name: str, batch: int) -> None:
        from simperf.workload.trace.target import parse_input
        from simperf.workload.zoo_source import ENTRIES

        torch, entry = bench.torch, ENTRIES[name]
        module, _, function = entry.function.partition(":")
        make = getattr(import_module(f"simperf.workload.zoo_source.{module}"), function)
        self.bench, self.loss = bench, entry.loss
        self.model = make().to(bench.device).train()
        shape = parse_input(entry.inputs[0])[1]
        if shape.dtype == "int64":
            self.data = torch.randint(1000, (batch, *shape.shape), device=bench.device)
        else:
            self.data = torch.rand(batch, *shape.shape, device=bench.device)
        with torch.no_grad():
            output = self.model(self.data)
        self.target = (
            torch.randint(output.shape[-1], (output.numel() // output.shape[-1],), device=bench.device)
            if self.loss == "cross-entropy"
            else torch.zeros_like(output)
        )
        self.optimizer = trained_by(entry.optimizer, list(self.model.parameters()))

    def step(self, *, wait: bool) -> tuple[float, float, float, float]:
        """One step: time of all of it, of forward pass, backward pass and update [s].

        `wait` is whether to wait for the device between the parts, without which theirs are the host's times.
        """
        functional = self.bench.torch.nn.functional
        pause = self.bench.synchronize if wait else (lambda: None)
        self.bench.synchronize()
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        output = self.model(self.data)
        if self.loss == "cross-entropy":
            cost: Any = functional.cross_entropy(output.reshape(-1, output.shape[-1]), self.target)
        else:
            cost = functional.mse_loss(output, self.target)
        pause()
        forward = time.perf_counter()
        cost.backward()
        pause()
        backward = time.perf_counter()
        self.optimizer.step()
        self.bench.synchronize()
        end = time.perf_counter()
        return end - begin, forward - begin, backward - forward, end - backward


def _steps(bench: Bench, name: str, batch: int, *, optimizer: str) -> Task:
    points: list[tuple[str, dict[str, Value]]] = []
    for part in PARTS:
        at: dict[str, Value] = {"model": name, "batch": batch, "precision": "fp32", "optimizer": optimizer}
        at |= {"part": part, "device": bench.kind}
        if not bench.cuda:
            at["threads"] = bench.threads
        points.append((f"step/{name}", at))

    def run(wanted: Sequence[int]) -> Iterator[Measurement]:
        trainer = Trainer(bench, name, batch)
        for _ in range(3):
            first = trainer.step(wait=False)[0]
        budget = 1.5 if bench.quick else 5.0
        rounds = max(3 if bench.quick else 5, min(60, int(budget / max(first, 1e-6))))
        # on a GPU the step as it runs, then again with waits between its parts
        whole = [trainer.step(wait=False) for _ in range(rounds)]
        apart = [trainer.step(wait=True) for _ in range(min(rounds, 10))] if bench.cuda else whole
        for index in wanted:
            readings = tuple(each[index] for each in (whole if index == 0 else apart))
            yield Measurement(*points[index], readings, warnings=doubts(readings))

    return Task(tuple(points), run, together=True)


def family(bench: Bench) -> Family:
    """Training steps of the models, batch by batch."""
    from simperf.workload.zoo_source import ENTRIES

    for name, (small, large) in MODELS.items():
        if bench.quick and name not in _QUICK:
            continue
        batches = large if bench.cuda else small
        for batch in batches[:2] if bench.quick else batches:
            yield _steps(bench, name, batch, optimizer=ENTRIES[name].optimizer)
