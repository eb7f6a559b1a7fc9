import marimo

app = marimo.App(width="medium", app_title="simperf: three regimes")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.execution import run
    from simperf.report.plots import draw
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts
    from simperf.workload import chain, make_op

    lesson = find_lesson("regimes")
    return (
        asked,
        chain,
        code,
        draw,
        exercises,
        language_switch,
        lesson,
        make_op,
        mo,
        opening,
        run,
        simperf,
        summary,
        verdicts,
    )


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
def _(chain, make_op, run, simperf):
    def program(m, *, elements: int = 1_000_000, flops: int = 10, passes: int = 20):
        f = {"op": "elementwise", "elements": elements, "flops_per_element": flops}
        net = m.module(chain([make_op(f), make_op(f)]), m.gpu(), name="f(f(x))")
        for _ in range(passes):
            yield run(net, m.gpu())  # y = f(f(x))
        yield simperf.synchronize(m.gpu())
        m.metric("achieved", net.operations(fused=m.mode.fuses).flops * passes / m.now, "FLOP/s")

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    elements = mo.ui.slider(steps=[10**n for n in range(3, 9)], value=10**6, label="elements / 元素", show_value=True)
    steps = [1, 3, 10, 30, 100, 300, 1000, 3000]
    flops = mo.ui.slider(steps=steps, value=10, label="FLOP per element / 每元素 FLOP", show_value=True)
    fused = mo.ui.switch(label="fused / 融合")
    mo.hstack([elements, flops, fused], wrap=True, justify="start")
    return elements, flops, fused


@app.cell
def _(elements, flops, fused, program, simperf):
    result = simperf.simulate(
        program,
        machine="p4d-24xlarge",
        mode="fused" if fused.value else "eager",
        elements=elements.value,
        flops=flops.value,
        name="fused" if fused.value else "eager",
    )
    headline = f"{simperf.format_quantity(result.time, 's')}, {simperf.regime(result).name}"
    return headline, result


@app.cell
def _(draw, headline, language, lesson, mo, result):
    mo.vstack(
        [
            mo.md(f"## {headline}"),
            draw(result, "roofline"),
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
