# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: compilers and interpreters")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.execution import run
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch
    from simperf.workload import mlp


@app.function
def program(m, *, width: int = 512, batch: int = 1, passes: int = 20):
    net = m.module(mlp([width, width // 2, width // 4, 2], batch), m.gpu(), name="net")
    for _ in range(passes):
        yield run(net, m.gpu())  # y = net(x)
    yield simperf.synchronize(m.gpu())
    m.metric("time per pass", m.now / passes, "s")


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("hybrid", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    mode = mo.ui.dropdown(["eager", "scripted", "fused", "captured"], value="eager", label="mode / 模式")
    width = mo.ui.slider(steps=[512, 1024, 2048, 4096, 8192], value=512, label="width / 宽度", show_value=True)
    batch = mo.ui.slider(steps=[1, 16, 64, 256, 1024], value=1, label="batch / 批量", show_value=True)
    controls(mode, width, batch)
    return batch, mode, width


@app.cell
def _(batch, mode, page, width):
    given = {"machine": "p3-2xlarge", "mode": mode.value, "name": mode.value}
    result = simperf.simulate(program, **given, width=width.value, batch=batch.value)
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
