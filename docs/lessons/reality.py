# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: prediction meets reality")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch


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


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("reality", language.value)
    page.opening(program, reality)
    return (page,)


@app.cell
def _():
    t1 = mo.ui.slider(1, 20, value=4, label="t1 (ms)", show_value=True)
    size = mo.ui.slider(steps=[256, 512, 768, 1024], value=512, label="x: size / 大小", show_value=True)
    again = mo.ui.button(label="measure again / 再测一次")
    controls(t1, size, again)
    return again, size, t1


@app.cell
def _(again, size, t1):
    again
    try:
        measured = reality(40, size.value, t1.value * 1e-3)
    except ImportError:
        measured = {"t1": t1.value * 1e-3, "t2": 2 * size.value**3 / 90e9}  # FLOP of a product, FLOP/s of a core
    times = {name: measured[name] for name in ("t1", "t2")}
    free = {"launch": "0 s", "result": "0 s", "depth": "unlimited"}
    predicted = {
        mode: simperf.simulate(program, frontend=free, mode=mode, name=mode, n=40, **times)
        for mode in ("synchronous", "eager")
    }
    return measured, predicted, times


@app.cell
def _(measured, page, predicted, times):
    lines = [f"| | {page.say('predicted')} | {page.say('measured')} | {page.say('difference')} |", "|---|---|---|---|"]
    for mode, name in (("synchronous", "waiting for each"), ("eager", "with a queue")):
        time, real = predicted[mode].time, measured.get(mode)
        shown = f"{simperf.format_quantity(real, 's')} | {time / real - 1:+.1%}" if real else "– | –"
        lines.append(f"| {page.say(name)} | {simperf.format_quantity(time, 's')} | {shown} |")
    given = ", ".join(f"{name} = {simperf.format_quantity(time, 's')}" for name, time in times.items())
    missing = [] if "eager" in measured else [mo.md(page.say("missing"))]
    mo.vstack([mo.md("\n".join(lines)), mo.md(given), *missing])
    return


@app.cell
def _(page, predicted):
    page.shown(simperf.format_quantity(predicted["eager"].time, "s"), draw, predicted["eager"])
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
