# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: playground")

with app.setup:
    from functools import lru_cache

    import marimo as mo

    import simperf
    from simperf import DDP, DataParallel, Layout, ModelParallel, Servers
    from simperf.teach.playground import Address, Menu, Playground, Slider

    gpt = {"name": "gpt", "layers": 4, "hidden": 4096, "heads": 32, "ffn": 16384, "vocabulary": 32000, "sequence": 1024}
    models = {"ResNet-18": "resnet18", "ResNet-50": "resnet50", "BERT base": "bert-base-128", "GPT, 4 layers": gpt}
    strategies = ("DDP", "DataParallel", "parameter servers", "layout")
    settings = {
        "machine": Menu(["pcie-4gpu", "dgx-1v", "dgx-a100", "dgx-h100"], "dgx-1v"),
        "model": Menu(list(models), "ResNet-50"),
        "strategy": Menu(strategies, "DDP"),
        "precision": Menu(["fp32", "fp16"], "fp16"),
        "gpus": Slider([1, 2, 4, 8], 4),
        "batch": Slider([1, 2, 4, 8, 16, 32, 64, 128], 32),
        "tp": Slider([1, 2, 4, 8], 1),
        "pp": Slider([1, 2, 4], 1),
    }


@app.function
@lru_cache(maxsize=64)
def play(machine, model, strategy, precision, gpus, batch, tp, pp):
    """One step of the job that the settings describe."""
    job = {"on": machine, "precision": precision, "set": {"program.steps": 1}}
    if strategy == "layout":
        if gpus % (tp * pp):
            raise simperf.SimperfError(f"tp x pp = {tp * pp} does not divide {gpus} GPUs")
        layout = Layout(tp=tp, pp=pp, dp=gpus // (tp * pp))
        job |= {"layout": layout, "strategy": ModelParallel(microbatch=1), "batch": gpus * batch}
        return simperf.train(models[model], **job | {"precision": {"fp16": "fp16-master"}.get(precision, precision)})
    if strategy == "parameter servers":
        job |= {"strategy": Servers(2), "batch_per_gpu": batch, "set": {"program.steps": 2, "program.workers": gpus}}
        return simperf.train(models[model], **job)
    kind = DDP() if strategy == "DDP" else DataParallel()
    return simperf.train(models[model], **job, layout=Layout(dp=gpus), strategy=kind, batch_per_gpu=batch)


@app.function
@lru_cache(maxsize=64)
def limit(**given):
    """What each resource of that job would bring if it were twice as fast."""
    return simperf.limits(simperf.make_scenario(play(**given).scenario), faster=2.0)


@app.cell
def _():
    address = Address(mo.query_params())
    language = address.language_switch()
    language
    return address, language


@app.cell
def _(address, language):
    page = Playground(language.value)
    chosen = page.controls(settings, address)
    return chosen, page


@app.cell
def _(chosen, page):
    page.opening(chosen)
    return


@app.cell
def _(chosen, page):
    given = page.used(chosen.value)
    mo.stop(page.indivisible(given), mo.callout(mo.md(page.text["large"]), kind="warn"))
    try:
        result, why = play(**given), ""
    except simperf.SimperfError as error:  # too little memory, or a combination that does not exist
        result, why = None, f"{page.text['refused']} {error}"
    mo.stop(result is None, mo.callout(mo.md(why), kind="warn"))
    page.headline(result)
    return given, result


@app.cell
def _(page, result):
    drawn = page.timeline(result)
    drawn
    return (drawn,)


@app.cell
def _(drawn, given, page, result):
    drawn, result  # the speed-ups come last, as they are many runs
    page.helps(limit(**given))
    return


if __name__ == "__main__":
    app.run()
