# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: how often to save")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.teach.notebook import Page, controls, language_switch
    from simperf.teach.pictures import draw_curves
    from simperf.training.failures.checkpoint import daly, young

    intervals = [60, 120, 240, 480, 900, 1800, 3600, 7200]


@app.function
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


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("planner-failures", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    interval = mo.ui.slider(steps=intervals, value=480, label="interval / 间隔 (s)", show_value=True)
    pause = mo.ui.slider(steps=[10, 30, 100, 300], value=100, label="saving / 保存 (s)", show_value=True)
    mtbf = mo.ui.slider(steps=[1, 3, 10, 30], value=3, label="between failures / 故障间隔 (h)", show_value=True)
    controls(interval, pause, mtbf)
    return interval, mtbf, pause


@app.cell
def _(mtbf, pause):
    given = {"pause": pause.value, "mtbf": mtbf.value * 3600}
    goodput = {}
    for every in intervals:
        result = simperf.simulate(program, interval=every, **given, seed=1)
        goodput[every] = result.metrics["goodput"].value
    return given, goodput


@app.cell
def _(given, goodput, interval, page):
    page.shown(
        f"{page.say('goodput')} {goodput[interval.value]:.1%}",
        draw_curves,
        {"simulated": [(every / 60, 100 * share) for every, share in goodput.items()]},
        x="training between two checkpoints (min)",
        y="goodput (%)",
        here=(interval.value / 60, 100 * goodput[interval.value]),
        marks={"Young": young(*given.values()) / 60, "Daly": daly(*given.values()) / 60},
        log="x",
    )
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
