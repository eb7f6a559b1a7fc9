# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: three regimes")

with app.setup:
    import simperf
    from simperf.execution import run
    from simperf.teach.notebook import Page, Slider, Switch, language_switch
    from simperf.workload import chain, make_op

    settings = {
        "elements": Slider([10**n for n in range(3, 9)], 10**6),
        "flops": Slider([1, 3, 10, 30, 100, 300, 1000, 3000], 10),
        "fused": Switch(),
    }


@app.function
def program(m, *, elements: int = 1_000_000, flops: int = 10, passes: int = 20):
    f = {"op": "elementwise", "elements": elements, "flops_per_element": flops}
    net = m.module(chain([make_op(f), make_op(f)]), m.gpu(), name="f(f(x))")
    for _ in range(passes):
        yield run(net, m.gpu())  # y = f(f(x))
    yield simperf.synchronize(m.gpu())
    m.metric("achieved", net.operations(fused=m.mode.fuses).flops * passes / m.now, "FLOP/s")


@app.function
def play(elements, flops, fused):
    mode = "fused" if fused else "eager"
    given = {"machine": "p4d-24xlarge", "mode": mode, "name": mode}
    return simperf.simulate(program, **given, elements=elements, flops=flops)


@app.function
def outcome(**given):
    return play(**given).time


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("regimes", language.value, kept)
    page.opening(program)
    return (page,)


@app.cell
def _(page):
    prediction, chosen = page.prediction(), page.controls(settings)
    page.asked(prediction, chosen)
    return chosen, prediction


@app.cell
def _(chosen, page, prediction):
    page.predicted(prediction, outcome)
    result = play(**chosen.value)
    page.shown(result.time, page.named(result).plot, kind="roofline", facts=[page.say(simperf.regime(result).name)])
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="flops")
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
