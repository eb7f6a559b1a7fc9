# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: compilers and interpreters")

with app.setup:
    import simperf
    from simperf.execution import run
    from simperf.teach.notebook import Menu, Page, Slider, language_switch
    from simperf.workload import mlp

    settings = {
        "mode": Menu(["eager", "scripted", "fused", "captured"], "eager"),
        "width": Slider([512, 1024, 2048, 4096, 8192], 512),
        "batch": Slider([1, 16, 64, 256, 1024], 1),
    }


@app.function
def program(m, *, width: int = 512, batch: int = 1, passes: int = 20):
    net = m.module(mlp([width, width // 2, width // 4, 2], batch), m.gpu(), name="net")
    for _ in range(passes):
        yield run(net, m.gpu())  # y = net(x)
    yield simperf.synchronize(m.gpu())
    m.metric("time per pass", m.now / passes, "s")


@app.function
def play(mode, width, batch):
    return simperf.simulate(program, machine="p3-2xlarge", mode=mode, name=mode, width=width, batch=batch)


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
    page = Page("hybrid", language.value, kept)
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
    page.shown(result.time, page.named(result).plot)
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="width")
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
