# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: several GPUs")

with app.setup:
    import simperf
    from simperf.execution import copy, launch, synchronize
    from simperf.teach.notebook import Page, Slider, Switch, language_switch
    from simperf.training.replica import training_step
    from simperf.workload.zoo import load

    settings = {
        "b": Slider([64, 128, 256, 512, 1024, 2048, 4096], 256),
        "grow": Switch(),
    }


@app.function
def program(m, *, k: int = 2, batch: int = 256, steps: int = 2):
    gpus, lenet = m.gpus[:k], load("lenet")
    shards = [training_step(m, lenet, gpu, batch=batch // k) for gpu in gpus]
    for _ in range(steps):
        for gpu, shard in zip(gpus, shards, strict=True):  # each GPU: its share of the batch
            for kernel in (*shard.forward, *shard.backward):
                yield launch(kernel, gpu)
        for gradient in shards[0].gradients:  # each parameter: to GPU 0 and back
            for gpu in gpus[1:]:
                yield copy(gpu, gpus[0], nbytes=gradient.nbytes)
            for gpu in gpus[1:]:
                yield copy(gpus[0], gpu, nbytes=gradient.nbytes)
        yield synchronize(*gpus)
    m.metric("samples per second", batch * steps / m.now, "1/s")


@app.function
def play(k, b, grow):
    return simperf.simulate(program, machine="p3-8xlarge", name=f"{k} GPU", k=k, batch=b * (k if grow else 1))


@app.function
def gain(k, one):
    """Samples a second of k GPUs to those of one."""
    return k.metrics["samples per second"].value / one.metrics["samples per second"].value


@app.function
def outcome(**given):
    return gain(play(4, **given), play(1, **given))


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("several-gpus", language.value, kept)
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
    one, two, four = result = [play(k, **chosen.value) for k in (1, 2, 4)]
    page.shown(gain(four, one), page.draw_comparison, result, facts=[f"2 GPU: {gain(two, one):.2f}x"])
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="b")
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
