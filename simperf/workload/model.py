"""A traced model: its training step at any batch, precision and optimizer, and the memory that it needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from simperf.workload.footprint import largest_model_batch, memory
from simperf.workload.step import TrainingStep, training_step
from simperf.workload.traced import TracedStep, check_batch

__all__ = ["TracedModel"]


@dataclass(frozen=True, slots=True)
class TracedModel(TracedStep):
    """One training step of a model, for any batch and precision; a step that was made is kept."""

    _steps: dict[tuple[int, str, str], TrainingStep] = field(default_factory=dict, repr=False, compare=False)
    _held: dict[tuple[int, str, str, bool], dict[str, float]] = field(default_factory=dict, repr=False, compare=False)

    def at(self, batch: int, precision: str = "fp32", *, optimizer: str = "") -> TrainingStep:
        """Operations of one step.

        Parameters
        ----------
        batch : int
            Samples on this device.
        precision : str
            A key of `simperf.workload.mixed.TRAINING_PRECISIONS`.
        optimizer : str
            A key of `simperf.workload.optimizers.OPTIMIZERS`, or of `IMPLEMENTATIONS` there for the traced one;
            default: that one.

        Raises
        ------
        InputError
            A batch below 1.
        UnknownNameError
            No such precision or optimizer.
        """
        check_batch(batch)
        key = (batch, precision, optimizer)
        if key not in self._steps:
            self._steps[key] = training_step(self, batch, precision=precision, optimizer=optimizer)
        return self._steps[key]

    def memory(
        self,
        batch: int,
        precision: str = "fp32",
        *,
        optimizer: str = "",
        resident_gradients: bool = False,
    ) -> dict[str, float]:
        """Device memory at the moment of the step that needs most, by what holds it [B].

        See `simperf.workload.footprint.memory`.
        """
        check_batch(batch)
        key = (batch, precision, optimizer, resident_gradients)
        if key not in self._held:
            self._held[key] = memory(
                self, batch, precision=precision, optimizer=optimizer, resident_gradients=resident_gradients
            )
        return dict(self._held[key])

    def largest_batch(self, capacity: float, precision: str = "fp32", *, optimizer: str = "") -> int:
        """Samples that fit into a device memory of `capacity` [B]; 0 if not even one does."""
        return largest_model_batch(self, capacity, precision=precision, optimizer=optimizer)

    def changed(self, **fields: Any) -> Self:
        """The model with other fields, and without the steps that were made of it."""
        return replace(self, **fields, _steps={}, _held={})
