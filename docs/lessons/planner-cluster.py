# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: which cluster, by when, for how much")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.report.plans import draw_plan
    from simperf.study.planning import make_request
    from simperf.teach.notebook import Page, controls, language_switch


@app.function
def program(*, days: float = 4, budget: float = 300, batch: int = 128, nodes: int = 2):
    request = make_request(
        {
            "plan": {"model": "resnet50", "precision": "fp16", "samples": 1_281_167, "epochs": 90}
            | {"deadline": f"{days} d", "budget": f"{budget} USD", "title": "ResNet-50 on ImageNet"},
            "candidates": {"instances": ["p3-2xlarge", "p3-16xlarge", "p4d-24xlarge"]}
            | {"nodes": [1, nodes] if nodes > 1 else [1], "strategies": ["ddp"], "batch_per_gpu": batch},
        }
    )
    return simperf.plan(request)


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("planner-cluster", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    days = mo.ui.slider(steps=[0.25, 0.5, 1, 2, 4, 8], value=4, label="days / 天", show_value=True)
    budget = mo.ui.slider(steps=[100, 200, 400, 800, 1600], value=400, label="USD", show_value=True)
    nodes = mo.ui.slider(1, 4, value=1, label="servers, at most / 最多服务器", show_value=True)
    controls(days, budget, nodes)
    return budget, days, nodes


@app.cell
def _(budget, days, nodes, page):
    try:
        found, why = program(days=days.value, budget=budget.value, nodes=nodes.value), ""
    except simperf.InputError as error:  # it names what comes nearest
        found, why = None, f"{page.say('Nothing meets the deadline and the budget.')}\n\n{error}"
    mo.stop(found is None, mo.callout(mo.md(why), kind="warn"))
    best = found.winner
    headline = f"{best.choice.name}: {simperf.format_quantity(best.time, 's')}, {best.cost:.0f} USD"
    page.shown(headline, draw_plan, found)
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
