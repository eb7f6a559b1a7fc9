# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: pipelines")

with app.setup:
    import simperf
    from simperf.execution import launch, synchronize, wait
    from simperf.schedules import make_schedule
    from simperf.teach.notebook import Menu, Page, Slider, language_switch

    settings = {
        "schedule": Menu(["gpipe", "1f1b", "zb-h1", "zb-v", "v-half", "v-min"], "gpipe"),
        "stages": Slider(range(2, 9), 4),
        "microbatches": Slider([4, 8, 16, 32], 8),
    }


@app.function
def program(m, *, schedule: str = "1f1b", stages: int = 4, microbatches: int = 8, forward: simperf.Seconds = 10e-3):
    plan = make_schedule(schedule, stages=stages, microbatches=microbatches)
    done = {(s, one): m.simulation.env.event() for s in range(stages) for one in plan.stages[s]}
    share = {"F": 1, "B": 1 if plan.split else 2, "W": 1}

    def stage(s):
        for one in plan.stages[s]:
            for need in plan.needs(s, one):
                yield wait(done[need], why="bubble")
            yield launch(simperf.Kernel(str(one), time=share[one.kind] * forward / plan.chunks), m.gpu(s))
            yield synchronize(m.gpu(s))
            done[s, one].succeed()

    yield wait(m.simulation.env.all_of([m.spawn(stage(s), f"stage {s}").done for s in range(stages)]))
    m.metric("bubble", 1 - 3 * microbatches * forward / m.now)
    m.metric("micro-batches kept", max(plan.in_flight) / plan.chunks)


@app.function
def play(schedule, stages, microbatches):
    given = {"schedule": schedule, "stages": stages, "microbatches": microbatches}
    free = {"launch": "0 s", "result": "0 s"}
    return simperf.simulate(program, machine="dgx-a100", frontend=free, name="pipeline", **given)


@app.function
def outcome(**given):
    return play(**given).metrics["bubble"].value


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("pipelines", language.value, kept)
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
    bubble, stored = (result.metrics[name].value for name in ("bubble", "micro-batches kept"))
    facts = [simperf.format_quantity(result.time, "s"), f"{page.say('micro-batches kept')}: {stored:g}"]
    page.shown(bubble, page.named(result).plot, kind="gantt", facts=facts)
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="microbatches")
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
