import marimo

app = marimo.App(width="medium", app_title="simperf: compilers and interpreters")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.report.plots import draw
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts

    lesson = find_lesson("hybrid")
    return asked, code, draw, exercises, language_switch, lesson, mo, opening, simperf, summary, verdicts


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
def _(simperf):
    from simperf.execution import run
    from simperf.workload import mlp

    def program(m, *, width: int = 512, batch: int = 1, passes: int = 20):
        net = m.module(mlp([width, width // 2, width // 4, 2], batch), m.gpu(), name="net")
        for _ in range(passes):
            yield run(net, m.gpu())  # y = net(x)
        yield simperf.synchronize(m.gpu())
        m.metric("time per pass", m.now / passes, "s")

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    mode = mo.ui.dropdown(["eager", "scripted", "fused", "captured"], value="eager", label="mode")
    width = mo.ui.slider(steps=[512, 1024, 2048, 4096, 8192], value=512, label="width", show_value=True)
    batch = mo.ui.slider(steps=[1, 16, 64, 256, 1024], value=1, label="batch", show_value=True)
    mo.hstack([mode, width, batch], wrap=True, justify="start")
    return batch, mode, width


@app.cell
def _(batch, mode, program, simperf, width):
    result = simperf.simulate(
        program, machine="p3-2xlarge", mode=mode.value, width=width.value, batch=batch.value, name=mode.value
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
