# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: prediction meets reality")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.teach.notebook import Page, Slider, language_switch

    settings = {
        "t1": Slider(range(1, 21), 4),
        "size": Slider([256, 512, 768, 1024], 512),
    }


@app.function
def program(m, *, n: int = 40, t1: simperf.Seconds = 2e-3, t2: simperf.Seconds = 3e-3):
    product = simperf.Kernel("y = x @ x", time=t2, launch=t1)
    for _ in range(n):
        yield simperf.launch(product, m.gpu())
    yield simperf.synchronize(m.gpu())


@app.function
def reality(n, size, t1):
    """Measure t1, t2 and the loops of n products: waiting for each, and with a queue between two threads."""
    import queue
    import statistics
    import threading
    import time

    import torch

    torch.set_num_threads(1)  # one core computes, as one device does
    x = torch.rand(size, size)

    def taken(work, *given):
        began = time.perf_counter()
        work(*given)
        return time.perf_counter() - began

    def waiting():
        for _ in range(n):
            time.sleep(t1)  # the frontend prepares the next product
            torch.mm(x, x)

    def queued():
        jobs = queue.Queue()

        def backend():
            torch.set_num_threads(1)  # holds for each thread
            while (job := jobs.get()) is not None:
                torch.mm(job, job)

        thread = threading.Thread(target=backend)
        thread.start()
        for _ in range(n):
            time.sleep(t1)
            jobs.put(x)
        jobs.put(None)
        thread.join()

    taken(torch.mm, x, x)  # warm-up
    return {
        "t1": statistics.median(taken(time.sleep, t1) for _ in range(9)),
        "t2": statistics.median(taken(torch.mm, x, x) for _ in range(9)),
        "synchronous": taken(waiting),
        "eager": taken(queued),
    }


@app.function
def times(t1, size):
    """What is measured where torch is installed; else t2 is that of a core of 90 GFLOP/s."""
    try:
        return reality(40, size, t1 * 1e-3)
    except ImportError:
        return {"t1": t1 * 1e-3, "t2": 2 * size**3 / 90e9}


@app.function
def predict(mode, *, t1, t2, **measured):
    free = {"launch": "0 s", "result": "0 s", "depth": "unlimited"}
    return simperf.simulate(program, frontend=free, mode=mode, name=mode, n=40, t1=t1, t2=t2)


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("reality", language.value, kept)
    page.opening(program, reality)
    return (page,)


@app.cell
def _(page):
    prediction, chosen = page.prediction(), page.controls(settings)
    page.asked(prediction, chosen)
    return chosen, prediction


@app.cell
def _(page):
    again = mo.ui.button(label=page.say("measure again"))
    again
    return (again,)


@app.cell
def _(again, chosen):
    again
    measured = times(**chosen.value)
    predicted = {mode: predict(mode, **measured) for mode in ("synchronous", "eager")}
    return measured, predicted


@app.cell
def _(measured):
    def outcome(t1, size):  # the products take as long as was measured
        return predict("eager", t1=t1 * 1e-3, t2=measured["t2"]).time

    return (outcome,)


@app.cell
def _(measured, outcome, page, predicted, prediction):
    page.predicted(prediction, outcome)
    lines = [f"| | {page.say('predicted')} | {page.say('measured')} | {page.say('difference')} |", "|---|---|---|---|"]
    for mode, name in (("synchronous", "waiting for each"), ("eager", "with a queue")):
        time, real = predicted[mode].time, measured.get(mode)
        shown = f"{simperf.format_quantity(real, 's')} | {time / real - 1:+.1%}" if real else "– | –"
        lines.append(f"| {page.say(name)} | {simperf.format_quantity(time, 's')} | {shown} |")
    given = ", ".join(f"{name} = {simperf.format_quantity(measured[name], 's')}" for name in ("t1", "t2"))
    missing = [] if "eager" in measured else [mo.md(page.say("missing"))]
    mo.vstack([mo.md("\n".join(lines)), mo.md(given), *missing])
    return (lines,)


@app.cell
def _(lines, page, predicted):
    lines  # there is a prediction
    result = predicted["eager"]
    page.shown(result.time, page.named(result).plot)
    return (result,)


@app.cell
def _(chosen, outcome, page, result):
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
