import marimo

app = marimo.App(width="medium", app_title="simperf: how often to save")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts
    from simperf.teach.pictures import draw_curves
    from simperf.training.checkpoint import daly, young

    lesson = find_lesson("planner-failures")
    return (
        asked,
        code,
        daly,
        draw_curves,
        exercises,
        language_switch,
        lesson,
        mo,
        opening,
        simperf,
        summary,
        verdicts,
        young,
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
def _(simperf):
    def program(m, *, interval: simperf.Seconds = 480, pause: simperf.Seconds = 100, mtbf: simperf.Seconds = 10_800):
        saved, failure = 0.0, m.rng("failures").exponential(mtbf)
        while saved < 1e6:  # seconds of training that are to be done
            began = m.now
            if began + interval + pause <= failure:
                yield m.simulation.env.timeout(interval + pause)  # trained, and saved
                saved += interval
            else:
                yield m.simulation.env.timeout(failure - began + 60)  # all since the last saving is lost
                failure = m.now + m.rng("failures").exponential(mtbf)
        m.metric("goodput", saved / m.now)

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    intervals = [60, 120, 240, 480, 900, 1800, 3600, 7200]
    interval = mo.ui.slider(steps=intervals, value=480, label="interval / 间隔 (s)", show_value=True)
    pause = mo.ui.slider(steps=[10, 30, 100, 300], value=100, label="saving / 保存 (s)", show_value=True)
    mtbf = mo.ui.slider(steps=[1, 3, 10, 30], value=3, label="between failures / 故障间隔 (h)", show_value=True)
    mo.hstack([interval, pause, mtbf], wrap=True, justify="start")
    return interval, intervals, mtbf, pause


@app.cell
def _(mtbf, pause, program, simperf):
    def play(every):
        return simperf.simulate(program, interval=every, pause=pause.value, mtbf=mtbf.value * 3600, seed=1)

    return (play,)


@app.cell
def _(interval, intervals, play):
    result = play(interval.value)
    curve = [(every / 60, 100 * play(every).metrics["goodput"].value) for every in intervals]
    headline = f"goodput {result.metrics['goodput'].value:.1%}"
    return curve, headline, result


@app.cell
def _(curve, daly, draw_curves, headline, interval, language, lesson, mo, mtbf, pause, result, young):
    mo.vstack(
        [
            mo.md(f"## {headline}"),
            draw_curves(
                {"simulated": curve},
                x="training between two checkpoints (min)",
                y="goodput (%)",
                here=(interval.value / 60, 100 * result.metrics["goodput"].value),
                marks={
                    "Young": young(pause.value, mtbf.value * 3600) / 60,
                    "Daly": daly(pause.value, mtbf.value * 3600) / 60,
                },
                log="x",
            ),
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
