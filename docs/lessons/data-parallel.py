# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: data parallelism")

with app.setup:
    import simperf
    from simperf.collectives import collective_event, make_plan
    from simperf.execution import launch, record, wait
    from simperf.teach.notebook import Menu, Page, Slider, language_switch

    settings = {
        "machine": Menu({"4 GPUs": "pcie-4gpu", "4 x 4 GPUs, 25 Gbit/s": "pcie-4gpu-x4"}, "4 GPUs"),
        "how": Menu({"DDP": "ring", "DataParallel": "naive"}, "DDP"),
        "buckets": Slider([1, 2, 4, 8, 16, 32], 1),
        "backward": Slider(range(10, 201, 10), 60),
    }


@app.function
def program(m, *, how: str = "ring", buckets: int = 4, backward: simperf.Seconds = 60e-3):
    plan, ready = make_plan("all-reduce", how, nranks=len(m.gpus)), []
    part = simperf.Kernel("backward", time=backward / buckets)
    for _ in range(buckets):
        for gpu in m.gpus:
            yield launch(part, gpu)
        ready.append((yield record(m.gpu())))
    for bucket in ready:  # a bucket of gradients travels as soon as it is full
        yield wait(bucket)
        yield wait(collective_event(m.simulation, plan, m.machine.gpus, 200e6 / buckets))


@app.function
def play(machine, how, buckets, backward):
    count = buckets if how == "ring" else 1  # DataParallel knows no buckets
    given = {"machine": machine, "name": "DDP" if how == "ring" else "DataParallel"}
    return simperf.simulate(program, **given, how=how, buckets=count, backward=backward * 1e-3)


@app.function
def outcome(**given):
    return play(**given).time


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("data-parallel", language.value, kept)
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
    page.shown(result.time, page.named(result).plot)
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="buckets")
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
