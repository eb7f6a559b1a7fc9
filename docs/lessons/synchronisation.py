import marimo

app = marimo.App(width="medium", app_title="simperf: parameter servers and rings")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.execution import wait
    from simperf.report.plots import draw
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts

    lesson = find_lesson("synchronisation")
    return asked, code, draw, exercises, language_switch, lesson, mo, opening, simperf, summary, verdicts, wait


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
def _(simperf, wait):
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

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    where = mo.ui.dropdown(["gpu0", "cpu0", "every GPU", "ring"], value="gpu0", label="where / 何处")
    megabytes = mo.ui.slider(steps=[10, 20, 40, 80, 160, 320, 640], value=160, label="MB", show_value=True)
    machine = mo.ui.dropdown(["book-4gpu", "book-8v100", "dgx-1v"], value="book-4gpu", label="machine / 机器")
    mo.hstack([where, megabytes, machine], wrap=True, justify="start")
    return machine, megabytes, where


@app.cell
def _(machine, megabytes, program, simperf, where):
    result = simperf.simulate(
        program, machine=machine.value, where=where.value, nbytes=megabytes.value * 1e6, name=where.value
    )
    return (result,)


@app.cell
def _(draw, language, lesson, mo, result, simperf):
    mo.vstack(
        [
            mo.md(f"## {simperf.format_quantity(result.time, 's')}"),
            draw(result),
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
