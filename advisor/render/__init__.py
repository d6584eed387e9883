"""Advice -> the result document -> text, Markdown, HTML and JSON.

Every view is made from the document alone, so views cannot disagree with one another.
Importing this package imports neither jinja2 nor ``contract``, whose types only checkers need.
"""

from advisor.render.assemble import document, document_and_views, options_table
from advisor.render.jsonview import render_json
from advisor.render.names import Kind, placeholders
from advisor.render.pages import render_html, render_markdown
from advisor.render.pareto import options_html, options_markdown, options_text, scatter_svg
from advisor.render.picture import picture_markdown, picture_text
from advisor.render.prose import Length, report
from advisor.render.templating import template_names, template_problems
from advisor.render.text import render_text

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
