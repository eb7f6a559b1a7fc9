# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: sharding")

with app.setup:
    import marimo as mo

    import simperf
    from simperf import DataExchange, Layout, ModelParallel
    from simperf.teach.notebook import Page, controls, language_switch
    from simperf.teach.pictures import draw_curves

    shardings = ["none", "zero-1", "zero-2", "zero-3"]


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


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("sharding", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    sharding = mo.ui.dropdown(shardings, value="none", label="sharding / 分片")
    gpus = mo.ui.slider(steps=[1, 2, 4, 8], value=8, label="GPUs / GPU 数", show_value=True)
    hidden = mo.ui.slider(steps=[1024, 2048, 3072], value=2048, label="width / 宽度", show_value=True)
    controls(sharding, gpus, hidden)
    return gpus, hidden, sharding


@app.cell
def _(gpus, hidden, page, sharding):
    def memory(kind, count):
        return program(sharding=kind, gpus=count, hidden=hidden.value).metrics["memory"].value / 1e9

    chosen = program(sharding=sharding.value, gpus=gpus.value, hidden=hidden.value)
    time, held = (chosen.metrics[name].value for name in ("time per step", "memory"))
    words = dict(zip(shardings, ("everything on each GPU", "ZeRO-1", "ZeRO-2", "ZeRO-3"), strict=True))
    curves = {page.say(words[kind]): [(count, memory(kind, count)) for count in (1, 2, 4, 8)] for kind in shardings}
    here, axes = (gpus.value, held / 1e9), {"x": "GPUs", "y": "memory of a GPU (GB)", "log": ""}
    headline = f"{held / 1e9:.1f} GB, {simperf.format_quantity(time, 's')}"
    page.shown(headline, draw_curves, curves, here=here, **axes)
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
