"""Pictures in Chinese: what is known is said in it, names stay, and without a font it is English with a reason."""

import re
from pathlib import Path

import pytest

import simperf
from simperf.errors import UnknownNameError
from simperf.report import language
from simperf.report.language import Phrasebook, font_of, localize, phrasebook
from simperf.report.plots import KINDS, draw, draw_comparison
from simperf.report.style import figure, note, save, sized
from simperf.run import run
from simperf.scenario import load_scenario

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
SOURCES = "".join(
    path.read_text("utf-8")
    for room in ("report", "teach", "analysis", "engine", "execution", "collectives", "programs", "training")
    for path in sorted((Path(simperf.__file__).parent / room).rglob("*.py"))
)


@pytest.fixture(scope="module")
def book():
    return phrasebook("zh")


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("compute", "计算"),
        ("time (ms)", "时间（ms）"),
        ("link gpu0>plx0", "链路 gpu0>plx0"),
        ("cpu0  python", "cpu0  前端"),
        ("capacity 16 GB\n(above the picture)", "容量 16 GB（在图的上方）"),
        ("The 8 busiest of 12 links are shown.", "显示 12 条链路中最忙的 8 条。"),
        ("launches in queue: the 8 highest of 9 lines are shown.", "队列中的启动数：显示 9 条线中最高的 8 条。"),
        ("40 rows are merged into one a device or host. The first 40 of 80\nare shown.", None),
        ("y = x @ x", "y = x @ x"),
        ("", ""),
    ],
)
def test_words_and_sentences(book, english, chinese):
    said = book.say(english)
    assert said == chinese if chinese is not None else CHINESE.search(said) and "rows" not in said


def test_every_phrase_is_one_that_pictures_say(book):
    for english in book.words:
        for part in english.split("{}"):
            said = part.strip().removeprefix(": ")
            if len(said) > 3 and said not in ("higher is better", "lower is better"):
                assert said in SOURCES, english
    for english, other in book.words.items():
        assert english.count("{}") == len(re.findall(r"\{\d?\}", other)), english
        assert CHINESE.search(other) or english == "{}  {}", english


def _texts(made):
    made.canvas.draw()
    from matplotlib.text import Text

    return [text.get_text() for text in made.findobj(Text) if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("memory", "roofline")])
def test_pictures_of_a_run_are_chinese_but_for_names(kind):
    scenario = load_scenario("large/pipeline-of-four" if kind in ("pipeline", "stages") else "d2l/copy-overlap")
    made = localize(
        draw(run(scenario.variants[0] if kind in ("pipeline", "stages") else scenario), kind), "zh", drawn=False
    )
    said = " ".join(_texts(made))
    assert CHINESE.search(said)
    assert not re.search(r"\b(time|compute|copy|link|launches|wait|capacity)\b", said), said


def test_what_stays_below_is_wrapped_to_the_picture():
    made = figure(lambda made: note(made.subplots(), "The 8 busiest of 12 links are shown. " * 9), width=4.0)
    lines = localize(made, "zh", drawn=False).get_supxlabel().split("\n")
    assert len(lines) > 3
    assert max(map(len, lines)) <= 4.0 * 17 * 0.55


def test_english_is_left_alone_and_other_languages_are_named():
    made = draw_comparison([run(load_scenario("d2l/copy-overlap"))])
    before = _texts(made)
    assert _texts(localize(made, "en")) == before
    with pytest.raises(UnknownNameError, match="zh"):
        localize(made, "xh")


def test_without_a_font_it_is_english_and_says_why(monkeypatch):
    nothing = Phrasebook("zh", phrasebook("zh").words, ("No Such Family",))
    monkeypatch.setattr(language, "phrasebook", lambda _: nothing)
    made = draw(run(load_scenario("d2l/copy-overlap")))
    before = set(_texts(made))
    after = set(_texts(localize(made, "zh")))
    assert before <= after
    (said,) = after - before
    assert "No Such Family" in said


def test_letters_are_drawn_where_a_font_is(tmp_path, book, recwarn):
    if font_of(book) is None:
        pytest.skip("no font with Chinese characters is installed")
    save(localize(draw(run(load_scenario("d2l/copy-overlap"))), "zh"), tmp_path / "picture.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_a_page_says_how_wide_its_figures_are():
    with sized(4.0):
        assert figure(lambda _: None).get_figwidth() == 4.0
        assert figure(lambda _: None, width=6.0).get_figwidth() == 6.0
    assert figure(lambda _: None).get_figwidth() == 8.0
