# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: automatic parallelism")

with app.setup:
    import simperf
    from simperf.teach.notebook import Page, Slider, Switch, language_switch

    settings = {
        "t2": Slider(range(1, 21), 8),
        "megabytes": Slider(range(8, 257, 8), 64),
        "pinned": Switch(True),
    }


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


@app.function
def play(t2, megabytes, pinned):
    given = {"name": "pinned" if pinned else "pageable", "pinned": pinned}
    return simperf.simulate(program, machine="p3-2xlarge", **given, t2=t2 * 1e-3, nbytes=megabytes * 1e6)


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
    page = Page("parallelism", language.value, kept)
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
    page.curve(outcome, chosen.value, along="megabytes")
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
