import marimo

app = marimo.App(width="medium", app_title="simperf: data parallelism")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.collectives import collective_event, make_plan
    from simperf.execution import launch, record, wait
    from simperf.report.plots import draw
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts

    lesson = find_lesson("data-parallel")
    return (
        asked,
        code,
        collective_event,
        draw,
        exercises,
        language_switch,
        launch,
        lesson,
        make_plan,
        mo,
        opening,
        record,
        simperf,
        summary,
        verdicts,
        wait,
    )


@app.cell
def _(language_switch):
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language, lesson, opening):
    opening(lesson, language.value)
    return


@app.cell
def _(collective_event, launch, make_plan, record, simperf, wait):
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

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    hows = {"DDP": "ring", "DataParallel": "naive"}
    how = mo.ui.dropdown(hows, value="DDP", label="how / 方式")
    buckets = mo.ui.slider(steps=[1, 2, 4, 8, 16, 32], value=1, label="buckets / 桶", show_value=True)
    backward = mo.ui.slider(10, 200, step=10, value=60, label="backward / 反向 (ms)", show_value=True)
    machines = {"4 GPUs": "pcie-4gpu", "4 x 4 GPUs, 25 Gbit/s": "pcie-4gpu-x4"}
    machine = mo.ui.dropdown(machines, value="4 GPUs", label="machine / 机器")
    mo.hstack([how, buckets, backward, machine], wrap=True, justify="start")
    return backward, buckets, how, machine


@app.cell
def _(backward, buckets, how, machine, program, simperf):
    result = simperf.simulate(
        program,
        machine=machine.value,
        how=how.value,
        buckets=buckets.value if how.value == "ring" else 1,
        backward=backward.value * 1e-3,
        name=f"{how.selected_key}, buckets: {buckets.value if how.value == 'ring' else 1}",
    )
    return (result,)


@app.cell
def _(draw, language, lesson, mo, result, simperf):
    mo.vstack(
        [
            mo.md(f"## {simperf.format_quantity(result.time, 's')}"),
            draw(result),
            mo.md(lesson.text[language.value].picture),
            mo.md(lesson.text[language.value].surprise),
        ]
    )
    return


@app.cell
def _(language, lesson, summary):
    summary(lesson, language.value)
    return


@app.cell
def _(exercises, language, lesson):
    answers = exercises(lesson, language.value)
    return (answers,)


@app.cell
def _(answers, asked, language):
    asked(answers, language.value)
    return


@app.cell
def _(answers, language, lesson, verdicts):
    verdicts(lesson, answers, language.value)
    return


if __name__ == "__main__":
    app.run()
