"""How Sphinx builds the documentation: `sphinx-build -W docs docs/_build/html`.

Equations become MathML, which browsers draw themselves: the pages need no network and no script for them.
"""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.addnodes import download_reference

from simperf import __version__

project = "simperf"
author = "the simperf authors"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "lessons"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
myst_linkify_fuzzy_links = False

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # the docstrings give types, with units
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False

html_theme = "pydata_sphinx_theme"
html_title = f"simperf {version}"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": True, "show_nav_level": 1}
html_theme_options["secondary_sidebar_items"] = {
    "**": ["page-toc"],
    "explanation/mechanisms": [],
    "index": [],
    "accuracy-rows": [],
}
html_static_path = ["_static"]
html_css_files = ["simperf.css"]
html_sidebars: dict[str, list[str]] = {"explanation/mechanisms": [], "index": [], "accuracy-rows": []}
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="formula">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="equation" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


def _without_sources(app: Any, doctree: nodes.document) -> None:
    """Links to source files become text: the site copies no file of the package."""
    for node in list(doctree.findall(download_reference)):
        if node["reftarget"].startswith("../") and "_static" not in node["reftarget"]:
            node.replace_self(node.children)


def setup(app: Any) -> None:
    """Register the renderer of equations, and what becomes of links to source files."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("doctree-read", _without_sources)
