"""`--report` of run and compare: a page is written whole, or the run is refused before it begins."""

from simperf.cli import main


def test_run_and_compare_write_a_page(tmp_path, capsys):
    one, two = tmp_path / "run.html", tmp_path / "compare.html"
    assert main(["run", "d2l/sync-160mb", "--report", str(one)]) == 0
    assert main(["compare", "d2l/sync-160mb", "--report", str(two)]) == 0
    assert f"wrote {two}" in capsys.readouterr().err
    assert "60.00 ms" in one.read_text("utf-8")
    assert "Fastest" in two.read_text("utf-8")


PLAN = """
[plan]
model = "resnet18"
samples = 1_281_167
epochs = 1
deadline = "10 h"
[candidates]
instances = ["p3-2xlarge"]
nodes = 1
batch_per_gpu = 64
"""


def test_a_sweep_and_a_plan_show_their_best_once_more_with_its_timeline(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    one, two = tmp_path / "sweep.html", tmp_path / "plan.html"
    vary = ["--vary", "program.t1=5 us,20 us", "--set", "program.n=20", "--no-cache"]
    assert main(["sweep", "d2l/async", *vary, "--report", str(one)]) == 0
    assert main(["plan", str(tmp_path / "plan.toml"), "--no-cache", "--report", str(two)]) == 0
    assert ">Best point</h2>" in one.read_text("utf-8")
    assert ">Winner</h2>" in two.read_text("utf-8")


def test_a_run_on_several_devices_is_made_on_fewer_and_says_so(tmp_path):
    page = tmp_path / "run.html"
    assert main(["run", "training/overlap", "--report", str(page)]) == 0
    text = page.read_text("utf-8")
    assert ">Scaling</h2>" in text
    assert "also run with gpus = 1, 2, 4." in text


def test_another_format_is_refused_before_the_run(tmp_path, capsys):
    assert main(["run", "d2l/sync-160mb", "--report", str(tmp_path / "r.pdf")]) == 2
    assert "FILE.html" in capsys.readouterr().err


def test_limits_write_a_page_with_the_limit_as_its_headline(tmp_path, capsys):
    page = tmp_path / "limits.html"
    words = ["limits", "d2l/async", "--set", "program.n=20", "--crossover", "program.t2=1..100 us"]
    assert main([*words, "--report", str(page)]) == 0
    text = page.read_text("utf-8")
    assert '<h1 class="answer">Limited by program.t2: 10 % more speed changes the time by -' in text
    for heading in ("If one resource were faster", "Where the limit changes", "Timeline", "How to reproduce it"):
        assert f">{heading}</h2>" in text
    assert main(["limits", "d2l/async", "--report", str(tmp_path / "limits.txt")]) == 2
    assert "FILE.html" in capsys.readouterr().err
