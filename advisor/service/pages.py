"""Pages of HTML made of an answer's Markdown, in the manner of the reports."""

from __future__ import annotations

import html

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #8888; padding: .25rem .6rem; text-align: left; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid #8888; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; }
"""


def page_of(markdown: str) -> str:
    """Write a page that needs no other file; what stands in the text is never markup."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  only for these pages

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    title = markdown.lstrip("# ").partition("\n")[0].replace("\\", "")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}</body>\n</html>\n"
    )
