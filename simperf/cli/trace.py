"""`simperf trace` and `simperf zoo`: models as they are in torch, recorded for the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simperf.cli.completion import model_names
from simperf.cli.help import CommandApp
from simperf.cli.options import Format

if TYPE_CHECKING:
    from simperf.workload.model import TracedModel

__all__ = ["app", "trace"]

app = CommandApp("List and show the traced models that come with simperf, or trace them again.")

Batch = Annotated[int, typer.Option("--batch", min=1, max=10**9, help="Samples a step on one device.")]
_PRECISIONS = "fp32, tf32, fp16, bf16, bf16-master, bf16-pure, ..."
Optimizer = Annotated[str, typer.Option("--optimizer", help="sgd, momentum, adam, adamw, adamw-fused, ...")]


def trace(
    target: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="What makes the model; or file.py:function.")
    ],
    inputs: Annotated[
        list[str],
        typer.Option("--input", metavar="SHAPE", help="Batch first, as in 32x3x224x224 or 8x1024:int64; repeatable."),
    ],
    target_file: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help=".json, .json.gz or .toml")],
    loss: Annotated[str, typer.Option("--loss", help="auto, cross-entropy, mse, mean or sum.")] = "auto",
    optimizer: Annotated[str, typer.Option("--optimizer", help="sgd, momentum, adam, adamw, ...")] = "momentum",
    name: Annotated[str, typer.Option("--name", help="Name of the model; default: the function's.")] = "",
    output: Format = "table",
) -> None:
    """Record one training step of a torch model, on torch's meta device: no GPU, no memory, no weights."""
    from simperf.cli.terminal import note
    from simperf.workload.modelfile import check_model_name, write_model
    from simperf.workload.optimizers import optimizer_steps
    from simperf.workload.trace import load_target, parse_input, require_torch, trace_model
    from simperf.workload.trace.loss import find_loss

    check_model_name(target_file)
    for text in inputs:
        parse_input(text)
    find_loss(loss)
    optimizer_steps(optimizer)
    require_torch()
    found = load_target(target)
    model = trace_model(
        found, inputs, loss=loss, optimizer=optimizer, name=name or target.rpartition(":")[2], source=target
    )
    write_model(model, target_file)
    _rows(model, output, batch=parse_input(inputs[0])[0])
    for text in model.notes:
        note(f"note: {text}")
    note(f"wrote {target_file}: `simperf zoo show {target_file}` shows it")


@app.command("list")
def list_models(output: Format = "table") -> None:
    """List the models: parameters, and work of the forward pass for one sample."""
    from simperf.report.model_list import model_list

    typer.echo(model_list(output))


@app.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A name of `simperf zoo list`, or a model's file.", autocompletion=model_names
        ),
    ],
    batch: Batch = 32,
    precision: Annotated[str, typer.Option("--precision", help=f"{_PRECISIONS}  [default: fp32]")] = "",
    optimizer: Optimizer = "",
    kernels: Annotated[bool, typer.Option("--kernels", help="Every kernel of the step, instead of sums.")] = False,
    output: Format = "table",
) -> None:
    """Show one training step: work, traffic, gradients, and the memory that it needs.

    Of a large transformer whose kernels depend on a layout: parameters and arithmetic.
    """
    from simperf.workload import zoo
    from simperf.workload.transformers.shipped import shipped_transformers
    from simperf.workload.transformers.step import unknown_kernels

    model = None if name in zoo.names() else shipped_transformers().get(name)
    if model is not None and any(unknown_kernels(model)):
        from simperf.report.transformer_facts import transformer_facts

        facts = transformer_facts(model, batch, precision=precision, optimizer=optimizer, kernels=kernels)
        _show(facts, f"{name}: {model.title} (batch {batch})", output)
        return
    precision = precision or "fp32"
    _rows(zoo.load(name), output, batch=batch, precision=precision, optimizer=optimizer, kernels=kernels)


@app.command("make")
def make(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Default: all.")] = None,
    folder: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where to write.")] = Path(),
) -> None:
    """Trace the models of the zoo again (this needs torch) and write their files."""
    from simperf.cli.terminal import note
    from simperf.errors import InputError, Problem
    from simperf.workload import zoo_source

    if not folder.is_dir():
        raise InputError(
            Problem("there is no such folder", file="--to", key=str(folder), expected="an existing folder")
        )
    for name in names or zoo_source.ENTRIES:
        for path in zoo_source.make([name], folder):
            note(f"wrote {path}")


def _rows(
    model: TracedModel,
    output: str,
    *,
    batch: int,
    precision: str = "fp32",
    optimizer: str = "",
    kernels: bool = False,
) -> None:
    """One step of a model as a table."""
    from simperf.report.rows import rows_text

    step = model.at(batch, precision, optimizer=optimizer)
    if kernels:
        rows = [
            {
                "kernel": op.name,
                "family": op.family,
                "dtype": op.dtype,
                "flops": op.flops,
                "read": op.nbytes_read,
                "written": op.nbytes_written,
            }
            for op in step.ops
        ]
        typer.echo(rows_text(rows, output, units={"flops": "FLOP", "read": "B", "written": "B"}))
        return
    facts = _facts(model, step, model.memory(batch, precision, optimizer=optimizer))
    words = f": {model.title}" if model.title else ""
    _show(facts, f"{model.name}{words} (batch {batch}, {precision}, {step.optimizer})", output)
    for text in model.notes if output == "table" else ():
        typer.echo(f"note: {text}")


def _show(facts: list[tuple[str, float, str]], title: str, output: str) -> None:
    """Facts as a table below a title, or as rows of numbers in SI units."""
    from simperf.report.rows import rows_text

    if output == "table":
        typer.echo(f"{title}\n")
        typer.echo(rows_text([{"what": key, "value": _readable(value, unit)} for key, value, unit in facts], output))
        return
    typer.echo(rows_text([{"what": key, "value": value, "unit": unit} for key, value, unit in facts], output))


def _facts(model: TracedModel, step: Any, memory: dict[str, float]) -> list[tuple[str, float, str]]:
    """Name, value and SI unit of what there is to know."""
    rows: list[tuple[str, float, str]] = [
        ("parameters", model.parameter_count, "1"),
        ("multiply-adds forward, a sample", model.macs(), "1"),
    ]
    for phase in ("forward", "backward", "update"):
        ops = getattr(step, phase)
        rows += [
            (f"{phase}: kernels", len(ops), "1"),
            (f"{phase}: work", sum(op.flops for op in ops), "FLOP"),
            (f"{phase}: traffic", sum(op.nbytes for op in ops), "B"),
        ]
    rows += [
        ("gradients", step.gradient_nbytes, "B"),
        ("input of a step", step.input_nbytes, "B"),
        *((f"memory at the peak: {key}", value, "B") for key, value in memory.items() if key not in ("total", "peak")),
        ("memory at the peak", memory["total"], "B"),
    ]
    return rows


def _readable(value: float, unit: str) -> str:
    from simperf.units import format_quantity

    return f"{value:,.0f}" if unit == "1" else format_quantity(value, unit)
