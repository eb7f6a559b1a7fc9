# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: sharding")

with app.setup:
    import simperf
    from simperf import DataExchange, Layout, ModelParallel
    from simperf.teach.notebook import Menu, Page, Slider, language_switch

    shardings = ["none", "zero-1", "zero-2", "zero-3"]
    settings = {
        "sharding": Menu(shardings, "none"),
        "gpus": Slider([1, 2, 4, 8], 8),
        "hidden": Slider([1024, 2048, 3072], 2048),
    }


@app.function
def program(*, sharding: str = "zero-3", gpus: int = 8, hidden: int = 2048, on: str = "dgx-h100"):
    model = simperf.Transformer(layers=16, hidden=hidden, heads=16, vocabulary=32000, sequence=2048)
    shared = sharding if gpus > 1 else "none"
    exchange = DataExchange(bucket=160e6 if gpus > 1 and shared != "zero-3" else 0.0)
    return simperf.train(
        model,
        on=on,
        layout=Layout(dp=gpus, sharding=shared),
        strategy=ModelParallel(microbatch=4, recompute="full", exchange=exchange),
        precision="bf16-master",
        batch=4 * gpus,
    )


@app.function
def outcome(**given):
    return program(**given).metrics["memory"].value


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("sharding", language.value, kept)
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
    names = dict(zip(shardings, ("everything on each GPU", "ZeRO-1", "ZeRO-2", "ZeRO-3"), strict=True))
    curves = {
        page.say(names[kind]): [
            (count, page.known(outcome, given | {"sharding": kind, "gpus": count}) / 1e9) for count in (1, 2, 4, 8)
        ]
        for kind in shardings
    }
    result = program(**given)
    held, time = (result.metrics[name].value for name in ("memory", "time per step"))
    axes = {"x": "GPUs", "y": "memory of a GPU (GB)", "log": ""}
    step = f"{page.say('time of a step')}: {simperf.format_quantity(time, 's')}"
    page.shown(held, page.draw_curves, curves, here=(given["gpus"], held / 1e9), **axes, facts=[step])
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
