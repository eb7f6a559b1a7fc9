# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: asynchronous execution")

with app.setup:
    import simperf
    from simperf.teach.notebook import Page, Slider, Switch, language_switch

    settings = {
        "t1": Slider(range(1, 41), 10),
        "t2": Slider(range(1, 41), 20),
        "n": Slider(range(20, 10_001, 20), 200),
        "wait": Switch(),
    }


@app.function
def program(m, *, n: int = 10_000, t1: simperf.Seconds = 10e-6, t2: simperf.Seconds = 20e-6):
    add = simperf.Kernel("y = x + 1", time=t2, launch=t1, result=10e-6)
    for _ in range(n):
        yield simperf.launch(add, m.gpu())  # returns as soon as it is in the queue
    yield simperf.synchronize(m.gpu())  # waits for all of them


@app.function
def play(t1, t2, n, wait):
    mode = "synchronous" if wait else "eager"
    return simperf.simulate(program, mode=mode, name=mode, n=n, t1=t1 * 1e-6, t2=t2 * 1e-6)


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
    page = Page("asynchrony", language.value, kept)
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
    page.curve(outcome, chosen.value, along="t1")
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
