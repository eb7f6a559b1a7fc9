# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: three regimes")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.execution import run
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch
    from simperf.workload import chain, make_op


@app.function
def program(m, *, elements: int = 1_000_000, flops: int = 10, passes: int = 20):
    f = {"op": "elementwise", "elements": elements, "flops_per_element": flops}
    net = m.module(chain([make_op(f), make_op(f)]), m.gpu(), name="f(f(x))")
    for _ in range(passes):
        yield run(net, m.gpu())  # y = f(f(x))
    yield simperf.synchronize(m.gpu())
    m.metric("achieved", net.operations(fused=m.mode.fuses).flops * passes / m.now, "FLOP/s")


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("regimes", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    elements = mo.ui.slider(steps=[10**n for n in range(3, 9)], value=10**6, label="elements / 元素", show_value=True)
    steps = [1, 3, 10, 30, 100, 300, 1000, 3000]
    flops = mo.ui.slider(steps=steps, value=10, label="FLOP per element / 每元素 FLOP", show_value=True)
    fused = mo.ui.switch(label="fused / 融合")
    controls(elements, flops, fused)
    return elements, flops, fused


@app.cell
def _(elements, flops, fused, page):
    mode = "fused" if fused.value else "eager"
    given = {"machine": "p4d-24xlarge", "mode": mode, "name": mode}
    result = simperf.simulate(program, **given, elements=elements.value, flops=flops.value)
    regime = page.say(simperf.regime(result).name)
    page.shown(f"{simperf.format_quantity(result.time, 's')}, {regime}", draw, result, "roofline")
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
