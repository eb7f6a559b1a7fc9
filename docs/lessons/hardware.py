# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: hardware")

with app.setup:
    import simperf
    from simperf.teach.notebook import Menu, Page, Slider, language_switch

    sizes = [1e3, 4e3, 16e3, 64e3, 250e3, 1e6, 4e6]
    wires = {
        "NVLink": {"machine": "dgx-1v", "source": "gpu0", "target": "gpu3"},
        "PCIe 3": {"machine": "pcie-4gpu", "source": "gpu0", "target": "gpu1"},
        "100 Gbit/s": {"machine": "p3dn-x2", "source": "n0/gpu0", "target": "n1/gpu0"},
    }
    settings = {
        "wire": Menu(list(wires), "NVLink"),
        "piece": Slider([size / 1e3 for size in sizes], 4),
    }


@app.function
def program(m, *, source: str = "gpu0", target: str = "gpu3", piece: simperf.Bytes = 4e3):
    nbytes = 4e6
    for _ in range(round(nbytes / piece)):
        yield m.send(source, target, piece)  # the latency of the way, then the bytes at its bandwidth
    m.metric("bandwidth", nbytes / m.now, "B/s")


@app.function
def play(wire, piece):
    return simperf.simulate(program, piece=piece * 1e3, **wires[wire])


@app.function
def outcome(**given):
    return play(**given).time


@app.function
def ladder(m, *, source: str = "gpu0", target: str = "gpu3"):
    for piece in sizes:  # one message of each size
        began = m.now
        yield m.send(source, target, piece)
        m.metric(f"{piece / 1e3:g}", piece / (m.now - began), "B/s")


@app.cell
def _():
    curves = {}
    for name, way in wires.items():
        found = simperf.simulate(ladder, **way).metrics
        curves[name] = [(size / 1e3, found[f"{size / 1e3:g}"].value / 1e9) for size in sizes]
    return (curves,)


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("hardware", language.value, kept)
    page.opening(program)
    return (page,)


@app.cell
def _(page):
    prediction, chosen = page.prediction(), page.controls(settings)
    page.asked(prediction, chosen)
    return chosen, prediction


@app.cell
def _(chosen, curves, page, prediction):
    page.predicted(prediction, outcome)
    result = play(**chosen.value)
    reached = result.metrics["bandwidth"]
    page.shown(
        result.time,
        page.draw_curves,
        curves,
        x="size of a message (kB)",
        y="bandwidth reached (GB/s)",
        here=(chosen.value["piece"], reached.value / 1e9),
        facts=[str(reached)],
    )
    return (result,)


@app.cell
def _(chosen, page, result):
    result  # there is one
    page.curve(outcome, chosen.value, along="piece")
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
