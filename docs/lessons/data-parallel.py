# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: data parallelism")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.collectives import collective_event, make_plan
    from simperf.execution import launch, record, wait
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch


@app.function
def program(m, *, how: str = "ring", buckets: int = 4, backward: simperf.Seconds = 60e-3):
    plan, ready = make_plan("all-reduce", how, nranks=len(m.gpus)), []
    part = simperf.Kernel("backward", time=backward / buckets)
    for _ in range(buckets):
        for gpu in m.gpus:
            yield launch(part, gpu)
        ready.append((yield record(m.gpu())))
    for bucket in ready:  # a bucket of gradients travels as soon as it is full
        yield wait(bucket)
        yield wait(collective_event(m.simulation, plan, m.machine.gpus, 200e6 / buckets))


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("data-parallel", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    machines = {"4 GPUs": "pcie-4gpu", "4 x 4 GPUs, 25 Gbit/s": "pcie-4gpu-x4"}
    machine = mo.ui.dropdown(machines, value="4 GPUs", label="machine / 机器")
    how = mo.ui.dropdown({"DDP": "ring", "DataParallel": "naive"}, value="DDP", label="how / 方式")
    buckets = mo.ui.slider(steps=[1, 2, 4, 8, 16, 32], value=1, label="buckets / 桶", show_value=True)
    backward = mo.ui.slider(10, 200, step=10, value=60, label="backward / 反向 (ms)", show_value=True)
    controls(machine, how, buckets, backward)
    return backward, buckets, how, machine


@app.cell
def _(backward, buckets, how, machine, page):
    count = buckets.value if how.value == "ring" else 1  # DataParallel knows no buckets
    result = simperf.simulate(
        program,
        machine=machine.value,
        name=f"{how.selected_key}, {page.say('buckets')}: {count}",
        how=how.value,
        buckets=count,
        backward=backward.value * 1e-3,
    )
    page.shown(simperf.format_quantity(result.time, "s"), draw, result)
    return


@app.cell
def _(page):
    answers = page.exercises()
    page.closing(answers)
    return (answers,)


@app.cell
def _(answers, page):
    page.verdicts(answers)
    return


if __name__ == "__main__":
    app.run()
