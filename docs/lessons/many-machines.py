# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: many machines")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.execution import launch, synchronize, wait
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch

    both = ("gpu{0..7}", "cpu{0..7}")
    machine = {
        "node": [
            {"id": "gpu{0..7}", "gpu": "v100-sxm2-16gb"},
            {"id": "cpu{0..7}", "cpu": "xeon-e5-2698v4"},
            {"id": "hub", "kind": "switch"},
        ],
        "link": [{"a": a, "b": "hub", "bandwidth": "12.5 GB/s", "latency": "10 us"} for a in both],
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


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("many-machines", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    workers = mo.ui.slider(1, 8, value=4, label="workers / 工作机", show_value=True)
    servers = mo.ui.slider(steps=[1, 2, 4, 8], value=1, label="servers / 服务器", show_value=True)
    slow = mo.ui.slider(1, 10, value=1, label="worker 0 slower / 工作机 0 慢 (x)", show_value=True)
    synchronous = mo.ui.switch(value=True, label="all wait for all / 互相等待")
    controls(workers, servers, slow, synchronous)
    return servers, slow, synchronous, workers


@app.cell
def _(page, servers, slow, synchronous, workers):
    result = simperf.simulate(
        program,
        machine=machine,
        frontend={"launch": "0 s", "result": "0 s"},
        name=f"{page.say('workers')}: {workers.value}, {page.say('servers')}: {servers.value}",
        workers=workers.value,
        servers=servers.value,
        synchronous=synchronous.value,
        slow=float(slow.value),
    )
    rate = f"{result.metrics['steps per second'].value:.1f} {page.say('steps/s')}"
    page.shown(f"{simperf.format_quantity(result.time, 's')}, {rate}", draw, result, "gantt")
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
