"""Pictures in Chinese: what is known is drawn in it, names stay, and without a font it is English with a reason."""

import ast
import re
from pathlib import Path

import pytest

import simperf
from simperf.analysis.left_out import SpreadOfErrors
from simperf.analysis.questions import LARGE, ONE_GPU, PLANS, SCALING
from simperf.analysis.verdict import Verdict
from simperf.answer import Answer
from simperf.cli import main
from simperf.errors import UnknownNameError
from simperf.report import language
from simperf.report.language import DOMAIN, FOLDER, font_of, languages, named, say, spoken, worded
from simperf.report.plots import KINDS, draw, draw_comparison
from simperf.report.style import figure, note, sized
from simperf.run import run
from simperf.scenario import load_scenario

RATE = Answer("samples per second", "higher")
HARDEST = SpreadOfErrors(-0.1, 0.2, 0.1, 40, 8, 3, hardest=0.3)
CHINESE = re.compile(r"[\u4e00-\u9fff]")
PACKAGE = Path(simperf.__file__).parent
#: texts of the package's modules and templates, a text over several lines as one
SOURCES = re.sub(
    r'"\s*\n\s*f?"',
    "",
    "".join(path.read_text("utf-8") for suffix in ("py", "html") for path in sorted(PACKAGE.rglob(f"*.{suffix}"))),
).lower()
#: ends of the parts that a phrase of a page is put together from
CLAUSE = re.compile(r"[,;:.()#+] ?")


def catalogue(name="zh"):
    pofile = pytest.importorskip("babel.messages.pofile", reason="babel is not installed")
    with (FOLDER / name / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        return {one.id: one.string for one in pofile.read_po(file) if one.id}


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("compute", "计算"),
        ("link gpu0>plx0", "链路 gpu0>plx0"),
        ("wait: launch queue full", "等待：启动队列已满"),
        ("exposed pipeline", "未被隐藏的流水线通信"),
        ("to gpu1", "到 gpu1"),
        ("y = x @ x", "y = x @ x"),
        ("", ""),
    ],
)
def test_names_are_told_part_by_part(english, chinese):
    with spoken("zh", drawn=False):
        assert named(english) == chinese
    assert named(english) == english


def test_words_of_a_lesson_come_before_those_of_the_catalogue():
    with spoken("zh", words={"worker {}": "工作机 {}", "compute": "算"}, drawn=False):
        assert (named("worker 3"), say("compute"), say("memory")) == ("工作机 3", "算", "访存")


def test_the_compiled_catalogue_is_that_of_the_words():
    told = catalogue()
    with spoken("zh", drawn=False):
        assert {english: say(english) for english in told} == told


def test_every_phrase_is_one_that_pictures_draw_or_pages_have():
    for english, other in catalogue().items():
        for part in english.split("{}"):
            for clause in CLAUSE.split(part.replace("\n", "\\n")):
                said = clause.strip().removesuffix("-").lower()
                assert len(said) <= 3 or said in SOURCES, english
        assert english.count("{}") == len(re.findall(r"\{\d?\}", other)), english
        assert CHINESE.search(other) or not re.search("[a-z]", english), english


def test_every_phrase_that_pictures_draw_has_a_translation():
    told, missing = catalogue(), set()
    for path in sorted((PACKAGE / "report").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
                found = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
                missing |= {text for text in found if isinstance(text, str) and len(text) > 1} - set(told)
    assert missing <= {"lower"}


def _texts(made):
    made.canvas.draw()
    from matplotlib.text import Text

    return [text.get_text() for text in made.findobj(Text) if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("memory", "roofline")])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_pictures_of_a_run_are_chinese_but_for_names(kind):
    scenario = load_scenario("large/pipeline-of-four" if kind in ("pipeline", "stages") else "d2l/copy-overlap")
    result = run(scenario.variants[0] if kind in ("pipeline", "stages") else scenario)
    with spoken("zh", drawn=False):
        told = " ".join(_texts(draw(result, kind)))
    assert CHINESE.search(told)
    assert not re.search(r"\b(time|compute|copy|link|launches|wait|capacity)\b", told), told


def test_what_stands_below_is_wrapped_to_the_picture():
    with spoken("zh", drawn=False):
        text = say("The {} busiest of {} links are shown.").format(8, 12) * 9
        made = figure(lambda made: note(made.subplots(), text), width=4.0)
    lines = made.get_supxlabel().split("\n")
    assert len(lines) > 3
    assert max(map(len, lines)) <= 4.0 * 17 * 0.55


def test_english_is_left_alone_and_other_languages_are_named():
    result = run(load_scenario("d2l/copy-overlap"))
    before = _texts(draw_comparison([result]))
    with spoken("en"):
        assert _texts(draw_comparison([result])) == before
    assert languages() == ["en", "zh"]
    with pytest.raises(UnknownNameError, match="zh"), spoken("xh"):
        pass


def test_without_a_font_it_is_english_and_says_why(monkeypatch):
    monkeypatch.setattr(language, "_fonts", lambda: {"zh": ["No Such Family"]})
    result = run(load_scenario("d2l/copy-overlap"))
    before = set(_texts(draw(result)))
    with spoken("zh"):
        after = set(_texts(draw(result)))
    (said,) = after - before
    assert "No Such Family" in said


def test_letters_are_drawn_where_a_font_is(recwarn):
    if font_of("zh") is None:
        pytest.skip("no font with Chinese characters is installed")
    with spoken("zh"):
        draw(run(load_scenario("d2l/copy-overlap"))).canvas.draw()
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_a_page_says_how_wide_its_figures_are():
    with sized(4.0):
        assert figure(lambda _: None).get_figwidth() == 4.0
        assert figure(lambda _: None, width=6.0).get_figwidth() == 6.0
    assert figure(lambda _: None).get_figwidth() == 8.0


@pytest.mark.parametrize("words", [("run", "d2l/async"), ("limits", "d2l/async"), ("compare", "d2l/sync-160mb")])
def test_headings_and_tables_of_a_page_are_chinese(words, tmp_path, capsys):
    path = tmp_path / "page.html"
    small = ["--set", "program.n=20"] if words[1] == "d2l/async" else []
    assert main([*words, *small, "--report", str(path), "--language", "zh"]) == 0
    assert not CHINESE.search(capsys.readouterr().out)
    text = path.read_text("utf-8")
    assert 'lang="zh-Hans"' in text
    shown = re.findall(r"<(?:h2|h3|th|caption|figcaption)[^>]*>(.*?)</", text)
    names = {"on GPU 0", "on the CPU", "a quarter on each GPU", "algbw", "busbw", "samples/s"}
    assert len(shown) > 30
    assert [one for one in shown if not CHINESE.search(one) and one not in names] == []
    lead = re.search(r'<p class="faint">(.*?)</p>', text)[1]
    assert all(CHINESE.search(line) for line in lead.split("<br>") if re.search("[A-Za-z]{3}", line))


@pytest.mark.parametrize(
    "text",
    [
        "Of 123,929 spans, the 123,015 that are shorter than 3.93 ms are drawn together in blocks, whose height is the "
        "share of the time that they fill; a trace (--trace FILE) has each. The 8 busiest of 304 links are shown.",
        "compute-bound; gpu0 98 %",
        str(Verdict(RATE, 0.8255, -1.0, "copy", 50.5e-3, 50.5e-3, {"copy": 50.5e-3, "compute": -1e-3}, "gpu0")),
        str(Verdict(Answer(), 1.2, 0.1, "copy", 45e-3, 45e-3, {"copy": 45e-3}, "gpu0")),
        "88.26 min to 3.175 h",
        "exposed communication, min over ranks",
        "exposed expert tensor",
        "Most of it: host takes 928.4 us less.",
        "A step of gpu0, part by part",
        "1.99x faster, same cost as #1",
        "1.033 times the step: +19.6 ms kernel time, +5.47 ms kernel slowdown; not distinguishable from #1",
        "the fastest: less kernel time and kernel slowdown than #2",
        "activations 40.88 GB, optimizer 8.030 GB, gathered weights 872.4 MB",
        *(f"No 90 % interval of #12: {HARDEST.beyond(0.5, question=one)}" for one in (ONE_GPU, SCALING, PLANS, LARGE)),
        "The search is complete: no other layout is faster. The fastest is 12.5 % above its own bound.",
        "Steps of one machine that differ by less than 9.3 % cannot be distinguished: errors of nine in ten published "
        "pairs were smaller. Of layouts that were not simulated, 1 may be as near.",
        "56 more servers and 2 switches are connected in the same way and not drawn",
        "host: nothing runs until the host has launched it; wait: nothing runs of what is launched",
    ],
)
def test_sentences_of_pages_have_no_two_english_words_in_a_row(text):
    with spoken("zh", drawn=False):
        told = worded(text)
    assert CHINESE.search(told)
    assert not re.search(r"[A-Za-z]{2,}[,;:]? [A-Za-z]{2,}", told.replace("--trace FILE", "")), told


def test_every_translation_takes_what_its_phrase_has():
    for english, other in catalogue().items():
        assert other.format(*["x"] * english.count("{}")).count("x") >= english.count("{}"), english


def test_a_language_without_a_page_is_refused(capsys):
    assert main(["run", "d2l/async", "--language", "zh"]) == 2
    assert "--report too" in capsys.readouterr().err
