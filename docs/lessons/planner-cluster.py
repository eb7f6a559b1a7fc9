import marimo

app = marimo.App(width="medium", app_title="simperf: which cluster, by when, for how much")


@app.cell
def _():
    import marimo as mo

    import simperf
    from simperf.report.plans import draw_plan
    from simperf.study.planning import make_request
    from simperf.teach import find_lesson
    from simperf.teach.notebook import asked, code, exercises, language_switch, opening, summary, verdicts

    lesson = find_lesson("planner-cluster")
    return (
        asked,
        code,
        draw_plan,
        exercises,
        language_switch,
        lesson,
        make_request,
        mo,
        opening,
        simperf,
        summary,
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
def _(make_request, simperf):
    def program(*, days: float = 4, budget: float = 300, batch: int = 128, nodes: int = 2):
        request = make_request(
            {
                "plan": {"model": "resnet50", "precision": "fp16", "samples": 1_281_167, "epochs": 90}
                | {"deadline": f"{days} d", "budget": f"{budget} USD", "title": "ResNet-50 on ImageNet"},
                "candidates": {"instances": ["p3-2xlarge", "p3-16xlarge", "p4d-24xlarge"]}
                | {"nodes": [1, nodes] if nodes > 1 else [1], "strategies": ["ddp"], "batch_per_gpu": batch},
            }
        )
        return simperf.plan(request)

    return (program,)


@app.cell
def _(code, program):
    code(program)
    return


@app.cell
def _(mo):
    days = mo.ui.slider(steps=[0.25, 0.5, 1, 2, 4, 8], value=4, label="days / 天", show_value=True)
    budget = mo.ui.slider(steps=[100, 200, 400, 800, 1600], value=400, label="USD", show_value=True)
    nodes = mo.ui.slider(1, 4, value=1, label="servers, at most / 最多服务器", show_value=True)
    mo.hstack([days, budget, nodes], wrap=True, justify="start")
    return budget, days, nodes


@app.cell
def _(budget, days, draw_plan, mo, nodes, program, simperf):
    try:
        found = program(days=days.value, budget=budget.value, nodes=nodes.value)
        winner = found.winner
        answer = [
            mo.md(f"## {winner.choice.name}: {simperf.format_quantity(winner.time, 's')}, {winner.cost:.0f} USD"),
            draw_plan(found),
        ]
    except simperf.InputError as error:  # nothing is feasible: the message names the nearest
        answer = [mo.callout(mo.md(str(error)), kind="warn")]
    return (answer,)


@app.cell
def _(answer, language, lesson, mo):
    mo.vstack([*answer, mo.md(lesson.text[language.value].picture), mo.md(lesson.text[language.value].surprise)])
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
