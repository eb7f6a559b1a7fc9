import marimo

app = marimo.App(width="medium", app_title="simperf: prediction meets reality")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.report.plots import draw
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts

    lesson = find_lesson("reality")
    return asked, code, draw, exercises, language_switch, lesson, mo, opening, simperf, summary, verdicts


@app.cell
def _(language_switch):
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language, lesson, opening):
    opening(lesson, language.value)
    return


@app.cell
def _(simperf):
    def program(m, *, n: int = 40, t1: simperf.Seconds = 2e-3, t2: simperf.Seconds = 3e-3):
        product = simperf.Kernel("y = x @ x", time=t2, launch=t1)
        for _ in range(n):
            yield simperf.launch(product, m.gpu())
        yield simperf.synchronize(m.gpu())

    return (program,)


@app.cell
def _():
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

    return (reality,)


@app.cell
def _(code, mo, program, reality):
    mo.vstack([code(program), mo.accordion({"torch": code(reality)})])
    return


@app.cell
def _(mo):
    t1 = mo.ui.slider(1, 20, value=4, label="t1 (ms)", show_value=True)
    size = mo.ui.slider(steps=[256, 512, 768, 1024], value=512, label="x: size / 大小", show_value=True)
    again = mo.ui.button(label="measure again / 再测一次")
    mo.hstack([t1, size, again], wrap=True, justify="start")
    return again, size, t1


@app.cell
def _(again, reality, size, t1):
    again
    try:
        measured = reality(40, size.value, t1.value * 1e-3)
    except ImportError:
        measured = None
    return (measured,)


@app.cell
def _(measured, program, simperf, t1):
    given = {"n": 40, "t1": measured["t1"] if measured else t1.value * 1e-3, "t2": measured["t2"] if measured else 3e-3}
    free = {"launch": "0 s", "result": "0 s", "depth": "unlimited"}
    results = {
        mode: simperf.simulate(program, frontend=free, mode=mode, name=mode, **given)
        for mode in ("synchronous", "eager")
    }
    return (results,)


@app.cell
def _(draw, language, lesson, measured, mo, results, simperf):
    missing = {
        "en": "torch is not installed here, so that there is only the prediction, with t2 = 3 ms. "
        "`pip install torch` brings the other half of this lesson.",
        "zh": "这里没有安装 torch，因此只有预测（取 t2 = 3 ms）。`pip install torch` 可以补上本课的另一半。",
    }

    def row(name, mode):
        real = measured[mode]
        off = results[mode].time / real - 1
        return (
            f"| {name} | {simperf.format_quantity(results[mode].time, 's')} | "
            f"{simperf.format_quantity(real, 's')} | {off:+.1%} |"
        )

    heads = {
        "en": ["predicted", "measured", "difference", "waiting for each", "with a queue"],
        "zh": ["预测", "实测", "相差", "每次等待", "使用队列"],
    }[language.value]
    if measured:
        lines = [f"| | {' | '.join(heads[:3])} |", "|---|---|---|---|"]
        lines += [row(heads[3], "synchronous"), row(heads[4], "eager")]
        lines += ["", ", ".join(f"{name} = {simperf.format_quantity(measured[name], 's')}" for name in ("t1", "t2"))]
        answer = mo.md("\n".join(lines))
    else:
        answer = mo.callout(mo.md(missing[language.value]))
    mo.vstack(
        [
            answer,
            draw(results["eager"]),
            mo.md(lesson.text[language.value].picture),
            mo.md(lesson.text[language.value].surprise),
        ]
    )
    return


@app.cell
def _(language, lesson, summary):
    summary(lesson, language.value)
    return


@app.cell
def _(exercises, language, lesson):
    answers = exercises(lesson, language.value)
    return (answers,)


@app.cell
def _(answers, asked, language):
    asked(answers, language.value)
    return


@app.cell
def _(answers, language, lesson, verdicts):
    verdicts(lesson, answers, language.value)
    return


if __name__ == "__main__":
    app.run()
