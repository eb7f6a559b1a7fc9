# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: which cluster, by when, for how much")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.teach.notebook import Page, Slider, language_switch

    settings = {
        "days": Slider([0.08, 0.25, 0.5, 1, 2, 4, 8], 4),
        "budget": Slider([100, 200, 400, 800, 1600], 400),
        "nodes": Slider([1, 2, 3, 4], 1),
    }


@app.function
def program(*, days: float = 4, budget: float = 300, batch: int = 128, nodes: int = 2):
    request = {
        "plan": {"model": "resnet50", "precision": "fp16", "samples": 1_281_167, "epochs": 90}
        | {"deadline": f"{days} d", "budget": f"{budget} USD", "title": "ResNet-50 on ImageNet"},
        "candidates": {"instances": ["p3-2xlarge", "p3-16xlarge", "p4d-24xlarge"]}
        | {"nodes": [1, nodes] if nodes > 1 else [1], "strategies": ["ddp"], "batch_per_gpu": batch},
    }
    return simperf.plan(request)


@app.function
def outcome(**given):
    return program(**given).winner.cost


@app.function
def cheapest(**given):
    return program(**given).winner.choice.instance


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("planner-cluster", language.value, kept)
    page.opening(program)
    return (page,)


@app.cell
def _(page):
    prediction, chosen = page.prediction(), page.controls(settings)
    page.asked(prediction, chosen)
    return chosen, prediction


@app.cell
def _(chosen, page, prediction):
    page.predicted(prediction, cheapest)
    try:
        result, why = program(**chosen.value), ""
    except simperf.InputError as error:  # it names what comes nearest
        result, why = None, f"{page.say('Nothing meets the deadline and the budget.')}\n\n{error}"
    mo.stop(result is None, mo.callout(mo.md(why), kind="warn"))
    best = result.winner
    page.shown(best.choice.name, result.plot, facts=[simperf.format_quantity(best.time, "s"), f"{best.cost:.0f} USD"])
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="days", name=page.say("Cost of the cheapest plan"))
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
