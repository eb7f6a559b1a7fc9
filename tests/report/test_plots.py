"""Pictures, looked at through their figures: what is written on them, and what is drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Recorder, Sample, Span
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, UnknownNameError
from simperf.execution import launch, synchronize
from simperf.execution.session import Session
from simperf.report.contributions import draw_influences
from simperf.report.counters import series
from simperf.report.data import FailedRun
from simperf.report.gantt import DENSE, gantt_rows, link_rates, occupancy
from simperf.report.plots import KINDS, draw, draw_comparison, plot, plot_comparison
from simperf.report.roofline import draw_roofline
from simperf.report.style import COLORS, byte_scale, figure, save, styled, time_scale
from simperf.results import Ceiling, OperationUse, ResourceUse, Result
from simperf.study.sensitivity import Influence, Sensitivity


def chain(count=20, depth=8, capacity=16e6):
    """Kernels of 1 MB each behind a short queue, on the real engine."""
    recorder = Recorder()
    session = Session(Simulation(recorder=recorder, depth=depth))

    def program(m):
        for i in range(count):
            yield launch(Kernel("matmul", 1e-3, launch=1e-4, holds=1e6, category=("compute", "memory")[i % 2]), m.gpu())
        yield synchronize()

    total = session.play(program(session))
    resources = {"gpu0 memory": ResourceUse("memory", capacity, 8e6), "sw0": ResourceUse("link", 16e9, 16e6)}
    samples = (*recorder.samples, Sample("network", "rate sw0", 0.0, 8e9), Sample("network", "rate sw0", 2e-3, 0.0))
    return Result("chain", total, spans=tuple(recorder.spans), samples=samples, resources=resources)


@pytest.fixture(scope="module")
def result():
    return chain()


def texts(picture):
    """All that is written on a figure."""
    import matplotlib.text

    with styled():
        picture.draw_without_rendering()
    return [text.get_text() for text in picture.findobj(matplotlib.text.Text) if text.get_text()]


def test_overview_names_rows_units_and_the_time(result):
    picture = draw(result)
    gantt, queue, memory = picture.axes
    written = texts(picture)
    assert "chain: 20.10 ms" in written
    assert [label.get_text() for label in gantt.get_yticklabels()] == ["cpu0  python", "gpu0  stream0", "link sw0"]
    legend = [text.get_text() for text in gantt.get_legend().get_texts()]
    assert legend == ["compute", "memory", "overhead", "wait", "link rate / capacity"]
    assert queue.get_ylabel() == "launches in queue"
    assert memory.get_ylabel() == "memory held (MB)"
    assert memory.get_xlabel() == "time (ms)"
    assert "capacity 16.0 MB" in written
    assert gantt.get_xlim() == (0, pytest.approx(20.1))


def test_gantt_draws_every_span_where_it_is(result):
    picture = draw(result, "gantt")
    from matplotlib.collections import PolyCollection

    groups = [group for group in picture.axes[0].collections if type(group) is PolyCollection]
    bars = [path for group in groups for path in group.get_paths()]
    starts = sorted(path.vertices[:, 0].min() for path in bars)
    assert starts == pytest.approx(sorted(span.start * 1e3 for span in result.spans), abs=1e-9)
    with_wait = [group for group in picture.axes[0].collections if group.get_hatch()]
    assert len(with_wait) == 1, "a wait is hatched"


def test_queue_and_memory_lines_hold_the_recorded_values(result):
    queue = draw(result, "queue").axes[0].lines[0]
    assert max(queue.get_ydata()) == 8
    memory = draw(result, "memory").axes[0]
    assert max(memory.lines[0].get_ydata()) == 8.0
    assert memory.lines[1].get_ydata() == [16.0, 16.0]
    far = chain(capacity=80e9)
    assert any("80.0 GB" in text and "above the picture" in text for text in texts(draw(far, "memory")))


def test_series_take_the_last_value_of_an_instant():
    samples = (Sample("q", "n", 1.0, 5.0), Sample("q", "n", 1.0, 3.0), Sample("q", "other", 1.0, 9.0))
    times, values = series(Result("r", 2.0, samples=samples), "n")["q"]
    assert times.tolist() == [0.0, 1.0, 2.0]
    assert values.tolist() == [0.0, 3.0, 3.0]


def test_link_rates_are_shares_of_the_capacity(result):
    [(name, times, shares, mean)] = link_rates(result)
    assert name == "sw0"
    assert shares.max() == 0.5
    assert mean == pytest.approx(0.5 * 2e-3 / result.time)
    assert times[-1] == result.time


def test_a_large_run_is_drawn_as_density_and_says_so():
    spans = tuple(Span("gpu0/stream0", "k", i * 1e-5, i * 1e-5 + 5e-6, "compute") for i in range(100_000))
    samples = tuple(Sample("gpu0/stream0", "queue length", i * 1e-5, float(i % 7)) for i in range(100_000))
    big = Result("big", 1.0, spans=spans, samples=samples)
    picture = draw(big)
    assert len(spans) > DENSE
    note = picture.get_supxlabel()
    assert "100 000 spans are drawn in bins of 1.25 ms" in note
    assert "launches in queue: the range of values within bins" in note
    gantt, queue = picture.axes
    heights = gantt.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.max() - heights.min() == pytest.approx(0.4, rel=1e-3), "busy for half of each bin: half as high"
    assert queue.collections[0].get_paths()[0].vertices[:, 1].max() == 6.0


@given(
    pairs=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=20), bins=st.integers(1, 13)
)
@settings(max_examples=100, deadline=None)
def test_occupancy_conserves_time(pairs, bins):
    spans = [Span("t", "s", float(min(pair)), float(max(pair)), "compute") for pair in pairs]
    edges = np.linspace(0.0, 40.0, bins + 1)
    shares = occupancy(spans, edges)
    for low, high, share in zip(edges, edges[1:], shares, strict=False):
        exact = sum(max(0.0, min(high, span.end) - max(low, span.start)) for span in spans)
        assert share * (high - low) == pytest.approx(exact, abs=1e-9)


def test_too_many_rows_are_merged_and_said_so():
    spans = tuple(Span(f"gpu{i}/stream{j}", "k", 0.0, 1.0, "compute") for i in range(60) for j in range(2))
    rows, text = gantt_rows(Result("wide", 2.0, spans=spans))
    assert len(rows) == 40
    assert "120 rows are merged" in text
    assert "first 40 of 60" in text
    assert "first 40 of 60" in draw(Result("wide", 2.0, spans=spans), "gantt").get_supxlabel()


@pytest.fixture
def operations():
    rows = (
        OperationUse("gemm", "gpu0", "fp32", 10, 1.4e11, 2e8, 1e-2, "compute"),
        OperationUse("relu", "gpu0", "fp32", 10, 1.6e7, 1.3e8, 1.6e-4, "memory"),
        OperationUse("tiny", "gpu1", "fp32", 10, 1e3, 1.2e4, 3e-6, "overhead"),
        OperationUse("copy", "gpu0", "fp32", 10, 0.0, 1e6, 1e-5, "memory"),
    )
    ceiling = Ceiling("v100", 900e9, {"fp32": 15.7e12, "fp16": 125e12, "fp64": 7.8e12})
    return Result("net", 0.1, operations=rows, ceilings={"gpu0": ceiling, "gpu1": ceiling})


def test_roofline_has_ceilings_regimes_and_points(operations):
    picture = draw(operations, "roofline")
    written = texts(picture)
    for part in ("memory-bound", "compute-bound", "memory: 900 GB/s", "ridge (fp32): 17.4 FLOP/B"):
        assert any(part in text for text in written), part
    assert any("fp32: 15.7 TFLOP/s" in text for text in written)
    assert any(text.startswith("gemm (98 %)") for text in written)
    axes = picture.axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert "FLOP/s" in axes.get_ylabel()
    assert "1 of 4 operations" in picture.get_supxlabel()
    points = [tuple(offset) for group in axes.collections for offset in group.get_offsets()]
    assert (pytest.approx(700.0), pytest.approx(1.4e13)) in points
    assert len(points) == 3


def test_roofline_refuses_a_part_that_is_not_there(operations):
    with pytest.raises(UnknownNameError, match="v100"):
        figure(lambda made: draw_roofline(made.subplots(), operations, part="v10"))


def test_comparison_writes_the_values():
    slow = Result("slow", 0.08, spans=(Span("gpu0/stream0", "k", 0.0, 0.06, "compute"),))
    fast, bare = Result("fast", 0.06, spans=slow.spans), Result("bare", 0.07)
    picture = draw_comparison([slow, fast, bare])
    written = [text.strip() for text in texts(picture)]
    for part in ("80.00 ms  (1.33x)", "60.00 ms", "70.00 ms  (1.17x)", "time (ms)", "slow", "compute", "idle"):
        assert part in written, part
    failed = draw_comparison([slow, FailedRun("unbounded", "gpu0 is out of memory")])
    assert " gpu0 is out of memory" in texts(failed)
    for nothing in ([], [FailedRun("unbounded", "gpu0 is out of memory")]):
        with pytest.raises(InputError):
            draw_comparison(nothing)


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_files_are_the_same_every_time_and_whole(result, tmp_path, suffix):
    plot(result, tmp_path / f"a{suffix}", "gantt")
    plot(result, tmp_path / f"b{suffix}", "gantt")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]
    plot_comparison([result], tmp_path / f"c{suffix}")


def test_what_cannot_be_drawn_is_said(result, tmp_path):
    bare = Result("bare", 1.0)
    for kind in KINDS:
        with pytest.raises(InputError, match="nothing to draw"):
            draw(bare, kind)
    with pytest.raises(UnknownNameError, match="gantt"):
        draw(result, "gant")
    with pytest.raises(InputError, match=r"\.svg"):
        plot(result, tmp_path / "a.jpeg", "gantt")
    with pytest.raises(InputError, match="written"):
        plot(result, tmp_path / "nowhere" / "a.svg", "gantt")


def test_style_leaves_the_users_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    made = figure(lambda made: made.subplots(), width=5.0, height=2.0)
    assert tuple(made.get_size_inches()) == (5.0, 2.0)
    assert dict(matplotlib.rcParams) == before


def test_scales_and_colours():
    assert [time_scale(t).unit for t in (0.0, 5e-6, 5e-3, 5.0, 1200.0, 90000.0)] == ["ns", "µs", "ms", "s", "min", "h"]
    assert [byte_scale(b).unit for b in (0.0, 5e3, 5e6, 5e9, 5e12)] == ["B", "kB", "MB", "GB", "TB"]
    assert len(set(COLORS.values())) == len(COLORS)


def test_save_does_not_touch_the_file_if_drawing_fails(result, tmp_path):
    target = tmp_path / "a.svg"
    target.write_text("before")

    class Broken:
        def savefig(self, *args, **kwargs):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        save(Broken(), target)
    assert target.read_text() == "before"


def test_long_notes_are_wrapped_and_a_comparison_says_what_it_compares():
    from simperf import load_scenario
    from simperf.report.plots import draw_comparison
    from simperf.report.style import figure, note
    from simperf.run import run_variants

    words = "Many rows are merged into one. " * 12
    made = figure(lambda each: note(each.subplots(), words), height=2.0)
    lines = made.get_supxlabel().splitlines()
    assert len(lines) > 2
    assert " ".join(lines) == words.strip()
    made.canvas.draw()
    box = made._supxlabel.get_window_extent()
    assert box.x1 <= made.bbox.x1

    results = [attempt.result for attempt in run_variants(load_scenario("d2l/sync-160mb"))]
    assert draw_comparison(results).get_suptitle() == "Where to add up 160 MB of gradients"


def test_the_slope_of_a_fast_memory_keeps_its_words_inside_the_axes():
    from simperf import load_scenario, run
    from simperf.report.plots import draw

    made = draw(run(load_scenario("d2l/regimes")), "roofline")
    made.canvas.draw()
    (axes,) = made.axes
    (words,) = [text for text in axes.texts if text.get_text().startswith("memory:")]
    assert words.get_window_extent().x0 > axes.bbox.x0


@given(st.integers(0, 0xFFFFFF))
def test_letters_are_readable_on_any_colour(number):
    from simperf.report.style import letters_on

    def light(value):
        parts = [(value >> shift & 255) / 255 for shift in (16, 8, 0)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((light(number), {"black": 0.0, "white": 1.0}[letters_on(f"#{number:06x}")]))
    assert (high + 0.05) / (low + 0.05) > 4.5


def test_the_ridge_and_the_legend_of_a_roofline_do_not_meet():
    from simperf import load_scenario, run

    scenario = load_scenario("training/ddp-or-dataparallel")
    (ddp,) = (one for one in scenario.variants if one.name == "DistributedDataParallel")
    picture = draw(run(ddp), "roofline")
    picture.draw_without_rendering()
    (axes,) = picture.axes
    (ridge,) = (text for text in axes.texts if text.get_text().startswith("ridge"))
    assert not ridge.get_window_extent().overlaps(axes.get_legend().get_window_extent())


def test_a_picture_says_how_many_parts_it_leaves_out():
    made = Sensitivity("morris", "time", "s", 26, tuple(Influence(f"key {i}", 1.0 / i, 0.0, 0.0) for i in range(1, 26)))
    names = [one.get_text() for one in draw_influences(made).axes[0].get_yticklabels()]
    assert names == [f"key {i}" for i in range(1, 21)]
    assert "The first 20 of 25 are shown." in draw_influences(made).get_supxlabel()
    few = Sensitivity("morris", "time", "s", 26, made.influences[:20])
    assert "are shown" not in draw_influences(few).get_supxlabel()
