# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: asynchronous execution")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch


@app.function
def program(m, *, n: int = 10_000, t1: simperf.Seconds = 10e-6, t2: simperf.Seconds = 20e-6):
    add = simperf.Kernel("y = x + 1", time=t2, launch=t1, result=10e-6)
    for _ in range(n):
        yield simperf.launch(add, m.gpu())  # returns as soon as it is in the queue
    yield simperf.synchronize(m.gpu())  # waits for all of them


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("asynchrony", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    t1 = mo.ui.slider(1, 40, value=10, label="t1 (µs)", show_value=True)
    t2 = mo.ui.slider(1, 40, value=20, label="t2 (µs)", show_value=True)
    n = mo.ui.slider(20, 10_000, step=20, value=200, label="n", show_value=True)
    wait = mo.ui.switch(label="wait for each / 每次等待")
    controls(t1, t2, n, wait)
    return n, t1, t2, wait


@app.cell
def _(n, page, t1, t2, wait):
    mode = "synchronous" if wait.value else "eager"
    result = simperf.simulate(program, mode=mode, name=mode, n=n.value, t1=t1.value * 1e-6, t2=t2.value * 1e-6)
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
