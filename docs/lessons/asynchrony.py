import marimo

app = marimo.App(width="medium", app_title="simperf: asynchronous execution")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.report.plots import draw
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts

    lesson = find_lesson("asynchrony")
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
    def program(m, *, n: int = 10_000, t1: simperf.Seconds = 10e-6, t2: simperf.Seconds = 20e-6):
        add = simperf.Kernel("y = x + 1", time=t2, launch=t1, result=10e-6)
        for _ in range(n):
            yield simperf.launch(add, m.gpu())  # returns as soon as it is in the queue
        yield simperf.synchronize(m.gpu())  # waits for all of them

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    t1 = mo.ui.slider(1, 40, value=10, label="t1 (µs)", show_value=True)
    t2 = mo.ui.slider(1, 40, value=20, label="t2 (µs)", show_value=True)
    n = mo.ui.slider(20, 2000, step=20, value=200, label="n", show_value=True)
    wait = mo.ui.switch(label="wait for each / 每次等待")
    mo.hstack([t1, t2, n, wait], wrap=True, justify="start")
    return n, t1, t2, wait


@app.cell
def _(n, program, simperf, t1, t2, wait):
    result = simperf.simulate(
        program,
        mode="synchronous" if wait.value else "eager",
        n=n.value,
        t1=t1.value * 1e-6,
        t2=t2.value * 1e-6,
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
