# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: many machines")

with app.setup:
    import simperf
    from simperf.execution import launch, synchronize, wait
    from simperf.teach.notebook import Page, Slider, Switch, language_switch

    both = ("gpu{0..7}", "cpu{0..7}")
    machine = {
        "node": [
            {"id": "gpu{0..7}", "gpu": "v100-sxm2-16gb"},
            {"id": "cpu{0..7}", "cpu": "xeon-e5-2698v4"},
            {"id": "hub", "kind": "switch"},
        ],
        "link": [{"a": a, "b": "hub", "bandwidth": "12.5 GB/s", "latency": "10 us"} for a in both],
    }
    settings = {
        "workers": Slider(range(1, 9), 4),
        "servers": Slider([1, 2, 4, 8], 1),
        "slow": Slider(range(1, 11), 1),
        "synchronous": Switch(True),
    }


@app.function
def program(m, *, workers: int = 8, servers: int = 1, synchronous: bool = True, slow: float = 1.0, steps: int = 4):
    together, names = m.simulation.env.all_of, [f"cpu{j}" for j in range(servers)]

    def work(i, todo):
        while todo:
            todo.pop()
            yield launch(simperf.Kernel("compute", time=10e-3 * (slow if i == 0 else 1)), m.gpu(i))
            yield synchronize(m.gpu(i))
            yield wait(together([m.send(f"gpu{i}", name, 100e6 / servers) for name in names]), why="push")
            yield wait(together([m.send(name, f"gpu{i}", 100e6 / servers) for name in names]), why="pull")

    for _ in range(steps if synchronous else 1):
        pot = [1] * workers * steps  # asynchronous: whoever is ready takes the next step
        ways = [work(i, [1] if synchronous else pot) for i in range(workers)]
        yield wait(together([m.spawn(way, f"worker {i}").done for i, way in enumerate(ways)]))
    m.metric("steps per second", workers * steps / m.now, "1/s")


@app.function
def play(workers, servers, slow, synchronous):
    free = {"launch": "0 s", "result": "0 s"}
    given = {"workers": workers, "servers": servers, "synchronous": synchronous, "slow": float(slow)}
    return simperf.simulate(program, machine=machine, frontend=free, name="push and pull", **given)


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
    page = Page("many-machines", language.value, kept)
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
    rate = f"{result.metrics['steps per second'].value:.1f} {page.say('steps/s')}"
    page.shown(result.time, page.named(result).plot, kind="gantt", facts=[rate])
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="servers")
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
