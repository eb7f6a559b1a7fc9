"""Templates of HTML: whatever is put into one is escaped, unless a template made it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from simperf.report.language import worded

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

__all__ = ["component", "render"]


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context

    found = Environment(
        loader=PackageLoader("simperf.report.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    # with a context, so that no constant is put into words when a template is compiled: pages have several languages
    found.filters["words"] = pass_context(_words)
    # data of a page's script, as short as it can be and in its own order
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "sort_keys": False}
    return found


def _words(context: Any, text: Any) -> Any:
    """A plain text in the language of the page; what a template made stays."""
    from markupsafe import Markup

    return worded(str(text)) if isinstance(text, str) and not isinstance(text, Markup) else text


def render(name: str, **values: Any) -> str:
    """A whole page from a template."""
    return _environment().get_template(name).render(**values)


def component(name: str, *values: Any, **named: Any) -> Markup:
    """A part of a page: what the macro of that name in ``components.html`` makes of the values."""
    made: Markup = getattr(_environment().get_template("components.html").module, name)(*values, **named)
    return made
