# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: pipelines")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.execution import launch, synchronize, wait
    from simperf.report.plots import draw
    from simperf.schedules import make_schedule
    from simperf.teach.notebook import Page, controls, language_switch


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


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("pipelines", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    names = ["gpipe", "1f1b", "zb-h1", "zb-v", "v-half", "v-min"]
    schedule = mo.ui.dropdown(names, value="gpipe", label="schedule / 调度")
    stages = mo.ui.slider(2, 8, value=4, label="stages / 级", show_value=True)
    microbatches = mo.ui.slider(steps=[4, 8, 16, 32], value=8, label="micro-batches / 微批量", show_value=True)
    controls(schedule, stages, microbatches)
    return microbatches, schedule, stages


@app.cell
def _(microbatches, page, schedule, stages):
    given = {"schedule": schedule.value, "stages": stages.value, "microbatches": microbatches.value}
    free = {"launch": "0 s", "result": "0 s"}
    result = simperf.simulate(program, machine="dgx-a100", frontend=free, name=page.say("pipeline"), **given)
    told = {name: one.value for name, one in result.metrics.items()}
    kept = f"{page.say('micro-batches kept')}: {told['micro-batches kept']:g}"
    bubble = f"{page.say('bubble')}: {100 * told['bubble']:.0f} %"
    page.shown(f"{simperf.format_quantity(result.time, 's')}, {bubble}, {kept}", draw, result, "gantt")
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
