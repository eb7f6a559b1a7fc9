# /// script
# [tool.marimo.display]
# theme = "system"
# ///
import marimo

app = marimo.App(width="medium", app_title="simperf: which layout for a large model")

with app.setup:
    import marimo as mo

    import simperf
    from simperf.teach.notebook import Page, Slider, Switch, language_switch

    settings = {
        "gpus": Slider([4, 8, 16], 16),
        "sequence": Slider([2048, 4096, 8192, 16384], 2048),
        "tp": Slider([1, 2, 4, 8], 8),
        "pp": Slider([1, 2, 4], 1),
        "microbatch": Slider([1, 2], 1),
        "recompute": Switch(),
    }


@app.function
def program(*, gpus: int = 16, sequence: int = 2048, top: int = 8, **chosen):
    shape = {"layers": 4, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672, "vocabulary": 32000}
    fixed = {"on": "dgx-a100", "gpus": gpus, "batch": 16, "cp": 1, "schedule": "1f1b", "sharding": "zero-1"}
    tried = {"tp": [1, 2, 4, 8], "pp": [1, 2, 4], "microbatch": [1, 2], "recompute": ["none", "full"]}
    request = {
        "model": {**shape, "sequence": sequence},
        "layouts": {**fixed, **tried, **chosen, "chunks": 1, "top": top},
    }
    return simperf.plan_layouts(request)


@app.function
def search(gpus, sequence, **_):
    """All layouts of these GPUs: the eight fastest are simulated, and those that their bounds leave."""
    return program(gpus=gpus, sequence=sequence)


@app.function
def chosen_layout(recompute, **given):
    return program(**given, top=1, recompute="full" if recompute else "none").winner


@app.function
def outcome(**given):
    return chosen_layout(**given).step


@app.function
def fastest(**given):
    layout = search(**given).winner.choice.layout
    return " ".join(f"{name}={getattr(layout, name)}" for name in ("tp", "pp", "dp") if getattr(layout, name) > 1)


@app.cell
def _():
    language, kept = language_switch(), {}
    language
    return kept, language


@app.cell
def _(kept, language):
    page = Page("planner-layouts", language.value, kept)
    page.opening(program)
    return (page,)


@app.cell
def _(page):
    prediction, chosen = page.prediction(), page.controls(settings)
    page.asked(prediction, chosen)
    return chosen, prediction


@app.cell
def _(chosen, page, prediction):
    page.predicted(prediction, fastest)
    found = search(**chosen.value)
    try:
        mine, why = chosen_layout(**chosen.value), ""
    except simperf.InputError as error:  # it does not divide the GPUs, or does not fit in their memory
        mine, why = None, f"{page.say('Your layout cannot be simulated.')} {error}"
    return found, mine, why


@app.cell
def _(found, mine, page, why):
    groups = {"everything is kept": [], "layers are computed again": []}
    for one in found.ranked:
        again = one.choice.recompute != "none"
        groups[list(groups)[again]].append((one.memory / 1e9, one.step * 1e3))
    best = found.winner
    size = simperf.format_quantity(best.memory, "B")
    facts = [simperf.format_quantity(best.step, "s"), size]
    picture = page.shown(
        best.choice.name,
        page.draw_points,
        {page.say(name): points for name, points in groups.items() if points},
        x="memory of the fullest GPU (GB)",
        y="time of a step (ms)",
        here=(mine.memory / 1e9, mine.step * 1e3) if mine else None,
        marks={"memory of an A100": 42.9},
        facts=facts,
    )
    mo.vstack([picture, mo.callout(mo.md(why), kind="warn")] if why else [picture])
    return


@app.cell
def _(found, mine, page):
    fast, yours = found.winner, page.say("your layout")
    names = dict.fromkeys([*fast.parts, *(mine.parts if mine else ())])
    lines = [f"| | {page.say('the fastest')} | {yours} |", "|---|---|---|"]
    lines.append(f"| | {fast.choice.name} | {mine.choice.name if mine else '–'} |")
    for name in names:
        cells = [one.parts.get(name, 0.0) if one else 0.0 for one in (fast, mine)]
        if max(cells) > 1e-3 * fast.step:
            lines.append(" | ".join([f"| {page.say(name)}", *(f"{1e3 * cell:.1f} ms" for cell in cells)]) + " |")
    counts = found.counts()
    told = page.say(
        "{layouts} layouts: {do not fit} do not fit, {simulated} were simulated, {ruled out by bound} need not be."
    )
    mo.vstack([mo.md("\n".join(lines)), mo.md(told.format(**counts))])
    return


@app.cell
def _(chosen, found, page):
    found  # there is a prediction
    page.curve(outcome, chosen.value, along="tp", name=page.say("Time of a step of your layout"))
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
