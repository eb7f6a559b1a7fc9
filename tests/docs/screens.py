"""Pictures of every page of the documentation, for a phone and a desk, light and dark.

``python -m tests.docs.screens FOLDER [PAGE ...]`` builds the pages and writes their pictures below a folder; a page is
named as in the documentation, such as ``reference/metrics``. Pages that were built into the folder before are not
built again if it holds them: ``FOLDER/html``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.conftest import copied
from tests.report.screens import pictures

__all__ = ["built_pages", "page_files"]

#: pages that Sphinx makes and nobody wrote
_MADE = ("genindex", "py-modindex", "search")


def built_pages(folder: Path) -> Path:
    """Build the documentation below a folder, unless it is there; gives the folder of the pages."""
    html = folder / "html"
    if not (html / "index.html").exists():
        words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(html.resolve())]
        with tempfile.TemporaryDirectory() as source:
            subprocess.run(words, cwd=copied(Path(source)), check=True)
    return html


def page_files(html: Path) -> dict[str, Path]:
    """Pages that were written, by name; pages of the source code and of generated members are left out."""
    found = {page.relative_to(html).with_suffix("").as_posix(): page for page in sorted(html.rglob("*.html"))}
    return {
        name: page
        for name, page in found.items()
        if not name.startswith(("_", "reference/generated")) and name not in _MADE
    }


def _main(words: list[str]) -> int:
    if not words:
        print("usage: python -m tests.docs.screens FOLDER [PAGE ...]", file=sys.stderr)
        return 2
    folder = Path(words[0])
    pages = page_files(built_pages(folder))
    unknown = [name for name in words[1:] if name not in pages]
    if unknown:
        print(f"no such page: {', '.join(unknown)}; known are {', '.join(pages)}", file=sys.stderr)
        return 2
    chosen = {name.replace("/", "."): pages[name] for name in words[1:] or pages}
    for path in pictures(chosen, folder):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
