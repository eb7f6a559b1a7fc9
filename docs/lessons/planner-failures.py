# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: how often to save")

with app.setup:
    import simperf
    from simperf.teach.notebook import Page, Slider, language_switch
    from simperf.training.failures.checkpoint import daly, young

    intervals = [60, 120, 240, 480, 900, 1800, 3600, 7200]
    settings = {
        "interval": Slider(intervals, 480),
        "pause": Slider([10, 30, 100, 300], 100),
        "mtbf": Slider([1, 3, 10, 30], 3),
    }


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


@app.function
def outcome(interval, pause, mtbf):
    given = {"interval": interval, "pause": pause, "mtbf": mtbf * 3600}
    return simperf.simulate(program, seed=1, **given).metrics["goodput"].value


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("planner-failures", language.value, kept)
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
    given = chosen.value
    goodput = {every: outcome(**given | {"interval": every}) for every in intervals}
    formulas = {"pause": given["pause"], "mtbf": given["mtbf"] * 3600}
    page.shown(
        goodput[given["interval"]],
        page.draw_curves,
        {"simulated": [(every / 60, 100 * share) for every, share in goodput.items()]},
        x="training between two checkpoints (min)",
        y="goodput (%)",
        here=(given["interval"] / 60, 100 * goodput[given["interval"]]),
        marks={"Young": young(*formulas.values()) / 60, "Daly": daly(*formulas.values()) / 60},
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
