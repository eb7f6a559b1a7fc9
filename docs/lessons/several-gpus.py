import marimo

app = marimo.App(width="medium", app_title="simperf: several GPUs")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.execution import copy, launch, synchronize
    from simperf.report.plots import draw_comparison
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts
    from simperf.training.replica import training_step
    from simperf.workload.zoo import load

    lesson = find_lesson("several-gpus")
    return (
        asked,
        code,
        copy,
        draw_comparison,
        exercises,
        language_switch,
        launch,
        lesson,
        load,
        mo,
        opening,
        simperf,
        summary,
        synchronize,
        training_step,
        verdicts,
    )


@app.cell
def _(language_switch):
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language, lesson, opening):
    opening(lesson, language.value)
    return


@app.cell
def _(copy, launch, load, synchronize, training_step):
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

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    b = mo.ui.slider(steps=[64, 128, 256, 512, 1024, 2048, 4096], value=256, label="b", show_value=True)
    grow = mo.ui.switch(label="k·b samples / k·b 个样本")
    mo.hstack([b, grow], wrap=True, justify="start")
    return b, grow


@app.cell
def _(b, grow, program, simperf):
    results = [
        simperf.simulate(
            program,
            machine="p3-8xlarge",
            k=k,
            batch=b.value * (k if grow.value else 1),
            name=f"{k} GPU{'s' * (k > 1)}",
        )
        for k in (1, 2, 4)
    ]
    rates = [one.metrics["samples per second"].value for one in results]
    gains = [f"{k} GPU{'s' * (k > 1)}: {rate / rates[0]:.2f}x" for k, rate in zip((1, 2, 4), rates, strict=True)]
    headline = ", ".join(gains)
    return headline, results


@app.cell
def _(draw_comparison, headline, language, lesson, mo, result, results):
    mo.vstack(
        [
            mo.md(f"## {headline}"),
            draw_comparison(results),
            mo.md(lesson.text[language.value].picture),
            mo.md(lesson.text[language.value].surprise),
        ]
    )
    return


@app.cell
def _(language, lesson, summary):
    summary(lesson, language.value)
    return


@app.cell
def _(exercises, language, lesson):
    answers = exercises(lesson, language.value)
    return (answers,)


@app.cell
def _(answers, asked, language):
    asked(answers, language.value)
    return


@app.cell
def _(answers, language, lesson, verdicts):
    verdicts(lesson, answers, language.value)
    return


if __name__ == "__main__":
    app.run()
