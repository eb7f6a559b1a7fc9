import marimo

app = marimo.App(width="medium", app_title="simperf: automatic parallelism")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.report.plots import draw
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts

    lesson = find_lesson("parallelism")
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
    def program(m, *, n: int = 12, t2: simperf.Seconds = 8e-3, nbytes: simperf.Bytes = 64e6, pinned: bool = True):
        gpu, product = m.gpu(), simperf.Kernel("y[i] = x @ x", time=t2, launch=8e-6)
        copies = gpu.stream(1)
        for _ in range(n):
            yield simperf.launch(product, gpu)
            done = yield simperf.record(gpu)
            yield simperf.wait(done, copies)  # the copy starts when y[i] is there
            yield simperf.copy(gpu, m.host, nbytes=nbytes, pinned=pinned, stream=copies)
        yield simperf.synchronize(gpu)

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    t2 = mo.ui.slider(1, 20, value=8, label="product / 乘法 (ms)", show_value=True)
    megabytes = mo.ui.slider(8, 256, step=8, value=64, label="copy / 拷贝 (MB)", show_value=True)
    pinned = mo.ui.switch(value=True, label="pinned / 锁页")
    mo.hstack([t2, megabytes, pinned], wrap=True, justify="start")
    return megabytes, pinned, t2


@app.cell
def _(megabytes, pinned, program, simperf, t2):
    result = simperf.simulate(
        program, machine="p3-2xlarge", t2=t2.value * 1e-3, nbytes=megabytes.value * 1e6, pinned=pinned.value
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
