"""The whole run of a divided job: all of its steps, and what failures of its machines leave of them."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.layout import by_server
from simperf.training.job import Job
from simperf.training.pipelined.play import Pipeline
from simperf.training.replica import Dimensions
from simperf.workload.mixed import training_precision
from simperf.workload.precision import SINGLE, element_size
from simperf.workload.transformers.parallel.adam import MOMENTS

__all__ = ["refuse_run", "state_nbytes", "tell_run"]


def state_nbytes(model: Dimensions) -> float:
    """Bytes of a checkpoint of the whole job: weights, those in fp32 that the optimizer updates, and its moments [B].

    Every rank writes its part: what ranks have copies of is written once.

    Parameters
    ----------
    model : Dimensions

    Examples
    --------
    >>> from simperf.workload.transformers import Transformer
    >>> llama = Transformer(layers=2, hidden=512, heads=8, kv_heads=8, vocabulary=1024, sequence=256)
    >>> state_nbytes(Dimensions(llama, precision="bf16-master")) / llama.parameters
    14.0
    """
    precision = training_precision(model.precision)
    each = element_size(precision.weights) + MOMENTS * element_size(precision.states)
    each += SINGLE if precision.master else 0.0
    return each * model.model.parameters


def refuse_run(job: Job) -> None:
    """Refuse failures of a job whose checkpoints have no known size.

    Raises
    ------
    InputError
        Adapters are saved beside weights that are not.
    """
    assert isinstance(job.model, Dimensions)
    failures = job.failures
    if failures is not None and failures.saving.storage and not failures.saving.size and job.model.adapters.rank:
        message, expected = "how much of frozen weights and adapters is saved is not known", "size = bytes of all"
        raise InputError(Problem(message, key="failures.size", value="0", expected=expected))


def tell_run(m: Session, job: Job, pipeline: Pipeline, step: float) -> None:
    """Report the whole run, if anybody asked.

    Parameters
    ----------
    m : Session
    job : Job
    pipeline : Pipeline
        After the run.
    step : float
        Time of each step that was not simulated [s].
    """
    if not job.total:
        return
    assert isinstance(job.model, Dimensions)
    whole = m.now + (job.total - job.steps) * step
    m.metric("run time", whole, "s")
    m.notes.append("steps of the run that are not simulated take the mean of the others but the first")
    if job.failures is None:
        return
    from simperf.training.failures.history import tell_long_run

    states = state_nbytes(job.model)
    saving = job.failures.saving
    if saving.storage and not saving.size:
        m.metric("checkpoint size", states, "B")
    tell_long_run(m, job.failures, nodes=len(by_server(m.machine, pipeline.nodes)), work=whole, states=states)
