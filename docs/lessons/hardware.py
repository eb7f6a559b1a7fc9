import marimo

app = marimo.App(width="medium", app_title="simperf: hardware")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts
    from simperf.teach.pictures import draw_curves

    lesson = find_lesson("hardware")
    return asked, code, draw_curves, exercises, language_switch, lesson, mo, opening, simperf, summary, verdicts


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
def _(simperf):
    def program(m, *, source: str = "gpu0", target: str = "gpu3", piece: simperf.Bytes = 4e3):
        nbytes = 4e6
        for _ in range(round(nbytes / piece)):
            yield m.send(source, target, piece)  # the latency of the way, then the bytes at its bandwidth
        m.metric("bandwidth", nbytes / m.now, "B/s")

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(simperf):
    sizes = [1e3, 4e3, 16e3, 64e3, 250e3, 1e6, 4e6]
    wires = {
        "NVLink": {"machine": "dgx-1v", "source": "gpu0", "target": "gpu3"},
        "PCIe 3": {"machine": "pcie-4gpu", "source": "gpu0", "target": "gpu1"},
        "100 Gbit/s": {"machine": "p3dn-x2", "source": "n0/gpu0", "target": "n1/gpu0"},
    }

    def ladder(m, *, source: str = "gpu0", target: str = "gpu3"):
        for piece in sizes:  # one message of each size
            began = m.now
            yield m.send(source, target, piece)
            m.metric(f"{piece / 1e3:g}", piece / (m.now - began), "B/s")

    tried = {wire: simperf.simulate(ladder, **given).metrics for wire, given in wires.items()}
    curves = {
        wire: [(piece / 1e3, found[f"{piece / 1e3:g}"].value / 1e9) for piece in sizes] for wire, found in tried.items()
    }
    return curves, sizes, wires


@app.cell
def _(mo, sizes, wires):
    wire = mo.ui.dropdown(list(wires), value="NVLink", label="wire / 连线")
    piece = mo.ui.slider(steps=[size / 1e3 for size in sizes], value=4, label="message / 消息 (kB)", show_value=True)
    mo.hstack([wire, piece], wrap=True, justify="start")
    return piece, wire


@app.cell
def _(piece, program, simperf, wire, wires):
    result = simperf.simulate(program, piece=piece.value * 1e3, **wires[wire.value])
    headline = f"4 MB: {simperf.format_quantity(result.time, 's')}, {result.metrics['bandwidth']}"
    return headline, result


@app.cell
def _(curves, draw_curves, headline, language, lesson, mo, piece, result):
    mo.vstack(
        [
            mo.md(f"## {headline}"),
            draw_curves(
                curves,
                x="size of a message (kB)",
                y="bandwidth reached (GB/s)",
                here=(piece.value, result.metrics["bandwidth"].value / 1e9),
            ),
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
