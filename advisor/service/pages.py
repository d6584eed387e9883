"""Pages of HTML: one to ask from, and those made of an answer's Markdown."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def page_to_ask(names: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Give the page to ask from, and the policy under which its own script runs and no other.

    Args:
        names: Setting -> what is known, which the page offers while one types.
    """
    page = Path(__file__).with_name("ask.html").read_text(encoding="utf-8")
    lists = "".join(_listed(f"{name}s", known) for name, known in names.items())
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    return page.replace("<!--names-->", lists), policy


def _listed(name: str, known: Sequence[str]) -> str:
    options = "".join(f'<option value="{html.escape(one)}">' for one in known)
    return f'<datalist id="{name}">{options}</datalist>\n'
