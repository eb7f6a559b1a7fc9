# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: several GPUs")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.execution import copy, launch, synchronize
    from simperf.report.plots import draw_comparison
    from simperf.teach.notebook import Page, controls, language_switch
    from simperf.training.replica import training_step
    from simperf.workload.zoo import load


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


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("several-gpus", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    b = mo.ui.slider(steps=[64, 128, 256, 512, 1024, 2048, 4096], value=256, label="b", show_value=True)
    grow = mo.ui.switch(label="k·b samples / k·b 个样本")
    controls(b, grow)
    return b, grow


@app.cell
def _(b, grow, page):
    results = []
    for k in (1, 2, 4):
        batch = b.value * (k if grow.value else 1)
        results.append(simperf.simulate(program, machine="p3-8xlarge", name=f"{k} GPU", k=k, batch=batch))
    one, *more = [result.metrics["samples per second"].value for result in results]
    gains = [f"{k} GPU: {rate / one:.2f}x" for k, rate in zip((2, 4), more, strict=True)]
    page.shown(", ".join(gains), draw_comparison, results)
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
