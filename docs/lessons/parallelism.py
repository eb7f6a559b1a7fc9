# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: automatic parallelism")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch


@app.function
def program(m, *, n: int = 12, t2: simperf.Seconds = 8e-3, nbytes: simperf.Bytes = 64e6, pinned: bool = True):
    gpu, product = m.gpu(), simperf.Kernel("y[i] = x @ x", time=t2, launch=8e-6)
    copies = gpu.stream(1)
    for _ in range(n):
        yield simperf.launch(product, gpu)
        done = yield simperf.record(gpu)
        yield simperf.wait(done, copies)  # the copy starts when y[i] is there
        yield simperf.copy(gpu, m.host, nbytes=nbytes, pinned=pinned, stream=copies)
    yield simperf.synchronize(gpu)


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("parallelism", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    t2 = mo.ui.slider(1, 20, value=8, label="product / 乘法 (ms)", show_value=True)
    megabytes = mo.ui.slider(8, 256, step=8, value=64, label="copy / 拷贝 (MB)", show_value=True)
    pinned = mo.ui.switch(value=True, label="pinned / 锁页")
    controls(t2, megabytes, pinned)
    return megabytes, pinned, t2


@app.cell
def _(megabytes, page, pinned, t2):
    given = {"machine": "p3-2xlarge", "name": page.say("pinned" if pinned.value else "pageable")}
    given |= {"t2": t2.value * 1e-3, "nbytes": megabytes.value * 1e6, "pinned": pinned.value}
    result = simperf.simulate(program, **given)
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
