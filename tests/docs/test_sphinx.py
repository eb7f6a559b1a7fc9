"""The documentation builds, with warnings as errors."""


def test_the_documentation_builds_without_a_warning(built):
    html, done = built
    assert done.returncode == 0, done.stderr
    assert "60 ms" in (html / "reference" / "scenario.html").read_text("utf-8")
