# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: parameter servers and rings")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.execution import wait
    from simperf.report.plots import draw
    from simperf.teach.notebook import Page, controls, language_switch


@app.function
def program(m, *, where: str = "gpu0", nbytes: simperf.Bytes = 160e6):
    gpus, together = m.machine.gpus, m.simulation.env.all_of
    if where == "ring":  # 2 (n-1) rounds: everybody passes an n-th on to the right
        for _ in range(2 * (len(gpus) - 1)):
            right = zip(gpus, (*gpus[1:], gpus[0]), strict=True)
            yield wait(together([m.send(gpu, to, nbytes / len(gpus)) for gpu, to in right]))
    else:
        servers = gpus if where == "every GPU" else [where]
        ways = [(gpu, server) for gpu in gpus for server in servers if gpu != server]
        yield wait(together([m.send(gpu, server, nbytes / len(servers)) for gpu, server in ways]))
        yield wait(together([m.send(server, gpu, nbytes / len(servers)) for gpu, server in ways]))


@app.cell
def _():
    language = language_switch()
    language
    return (language,)


@app.cell
def _(language):
    page = Page("synchronisation", language.value)
    page.opening(program)
    return (page,)


@app.cell
def _():
    machine = mo.ui.dropdown(["book-4gpu", "book-8v100", "dgx-1v"], value="book-4gpu", label="machine / 机器")
    where = mo.ui.dropdown(["gpu0", "cpu0", "every GPU", "ring"], value="gpu0", label="where / 何处")
    megabytes = mo.ui.slider(steps=[10, 20, 40, 80, 160, 320, 640], value=160, label="MB", show_value=True)
    controls(machine, where, megabytes)
    return machine, megabytes, where


@app.cell
def _(machine, megabytes, page, where):
    given = {"machine": machine.value, "name": page.say(where.value)}
    result = simperf.simulate(program, **given, where=where.value, nbytes=megabytes.value * 1e6)
    page.shown(simperf.format_quantity(result.time, "s"), draw, result)
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
