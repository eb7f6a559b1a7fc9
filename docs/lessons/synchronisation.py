# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: parameter servers and rings")

with app.setup:
    import simperf
    from simperf.execution import wait
    from simperf.teach.notebook import Menu, Page, Slider, language_switch

    settings = {
        "machine": Menu(["book-4gpu", "book-8v100", "dgx-1v"], "book-4gpu"),
        "where": Menu(["gpu0", "cpu0", "every GPU", "ring"], "gpu0"),
        "megabytes": Slider([10, 20, 40, 80, 160, 320, 640], 160),
    }


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


@app.function
def play(machine, where, megabytes):
    return simperf.simulate(program, machine=machine, name=where, where=where, nbytes=megabytes * 1e6)


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
    page = Page("synchronisation", language.value, kept)
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
    page.curve(outcome, chosen.value, along="megabytes")
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
