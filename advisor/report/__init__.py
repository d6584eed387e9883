"""Advice -> the result document -> text, Markdown, HTML and JSON.

Every view is made from the document alone, so views cannot disagree with one another.
Importing this package imports neither jinja2 nor ``contract``, whose types only checkers need; a
view is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.report.assembly import document, document_and_views, options_table
    from advisor.report.json_view import render_json
    from advisor.report.pages import render_html, render_markdown
    from advisor.report.pareto import options_html, options_markdown, options_text, scatter_svg
    from advisor.report.picture import picture_markdown, picture_text
    from advisor.report.placeholders import Kind, placeholders
    from advisor.report.prose import Length, report
    from advisor.report.templates import template_names, template_problems
    from advisor.report.text import render_text

_HOMES = {
    "Kind": "names",
    "Length": "prose",
    "document": "assemble",
    "document_and_views": "assemble",
    "options_html": "pareto",
    "options_markdown": "pareto",
    "options_table": "assemble",
    "options_text": "pareto",
    "picture_markdown": "picture",
    "picture_text": "picture",
    "placeholders": "names",
    "render_html": "pages",
    "render_json": "jsonview",
    "render_markdown": "pages",
    "render_text": "text",
    "report": "prose",
    "scatter_svg": "pareto",
    "template_names": "templating",
    "template_problems": "templating",
}
__all__ = [
    "Kind",
    "Length",
    "document",
    "document_and_views",
    "options_html",
    "options_markdown",
    "options_table",
    "options_text",
    "picture_markdown",
    "picture_text",
    "placeholders",
    "render_html",
    "render_json",
    "render_markdown",
    "render_text",
    "report",
    "scatter_svg",
    "template_names",
    "template_problems",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
