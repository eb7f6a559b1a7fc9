"""`--report` of run and compare: a page is written whole, or the run is refused before it begins."""

from simperf.cli import main


def test_run_and_compare_write_a_page(tmp_path, capsys):
    one, two = tmp_path / "run.html", tmp_path / "compare.html"
    assert main(["run", "d2l/sync-160mb", "--report", str(one)]) == 0
    assert main(["compare", "d2l/sync-160mb", "--report", str(two)]) == 0
    assert f"wrote {two}" in capsys.readouterr().err
    assert "60.00 ms" in one.read_text("utf-8")
    assert "Fastest" in two.read_text("utf-8")


def test_another_format_is_refused_before_the_run(tmp_path, capsys):
    assert main(["run", "d2l/sync-160mb", "--report", str(tmp_path / "r.pdf")]) == 2
    assert "FILE.html" in capsys.readouterr().err
