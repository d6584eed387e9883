"""The OpenAPI 3.1 document, made of the declared settings and the published schemas."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.api.service import FORMS, QUESTIONS, Question, schema_named
from advisor.files import __version__, packaged

_REFUSALS = {
    "403": "It names a file, the card of the server's machine, or what else is not allowed.",
    "406": "There is no such form of the answer.",
    "421": "The host name is not known here.",
    "422": "A name, a number or a setting is wrong; all of it is told at once.",
    "500": "The fault is advisor's.",
    "503": "Too many questions wait.",
    "504": "The answer takes too long.",
}
_BODIES = {
    "408": "The body comes too slowly.",
    "413": "The body is too long.",
    "415": "The body is of another type.",
}
_ERROR = {
    "type": "object",
    "title": "Error",
    "description": "What is wrong, and what to do.",
    "required": ["message", "hint", "errors"],
    "properties": {
        "message": {"type": "string", "description": "All that is wrong."},
        "hint": {"type": "string", "description": "What to do; empty where there is nothing."},
        "errors": {
            "type": "array",
            "description": "Each problem by itself.",
            "items": {
                "type": "object",
                "required": ["message", "hint"],
                "properties": {
                    "message": {"type": "string", "description": "What is wrong."},
                    "hint": {"type": "string", "description": "What to do."},
                },
            },
        },
    },
}
_Json = dict[str, Any]


def document() -> _Json:
    """Make it."""
    schemas: _Json = {"Error": _ERROR}
    for name in dict.fromkeys(one.document for one in QUESTIONS.values()):
        schemas |= _published(name)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "advisor",
            "version": __version__,
            "summary": "Will this language model run on this GPU, how well, and what to change?",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {
            **{f"/{one.name}": _path(one) for one in QUESTIONS.values()},
            "/bulk": {"post": _bulk()},
            "/health": {"get": _about("health", "Whether questions are answered.", "json")},
            "/metrics": {"get": _about("metrics", "Counts for Prometheus.", "text")},
            "/openapi.json": {"get": _about("openapi", "This document.", "json")},
        },
        "components": {"schemas": schemas},
    }


def title_of(name: str) -> str:
    """The name of a published schema among the components."""
    found: str = json.loads(_text(name))["$ref"].rpartition("/")[2]
    return found


def _text(name: str) -> str:
    file = packaged("schemas", "docs") / f"{name}.schema.json"
    return file.read_text(encoding="utf-8")


def _published(name: str) -> _Json:
    """Give the types of a published schema as components."""
    text = _text(name).replace('"#/$defs/', '"#/components/schemas/')
    found: _Json = json.loads(text)["$defs"]
    return found


def _path(question: Question) -> _Json:
    return {
        "get": {
            **_operation(question, "get"),
            "parameters": [*_parameters(question), *_how(question)],
        },
        "post": {
            **_operation(question, "post"),
            "parameters": _how(question),
            "requestBody": {"required": True, "content": _bodies(question)},
        },
    }


def _operation(question: Question, method: str) -> _Json:
    refused = _REFUSALS | (_BODIES if method == "post" else {})
    answers: _Json = {
        "200": {
            "description": question.summary,
            "headers": {"ETag": {"description": "Names the answer.", "schema": {"type": "string"}}},
            "content": {FORMS[form]: _content(question, form) for form in question.forms},
        }
    }
    if method == "get":
        answers["304"] = {"description": "If-None-Match names the answer that it would be."}
    return {
        "operationId": f"{question.name.replace('-', '_')}_{method}",
        "summary": question.summary,
        "responses": answers | {status: _refused(said) for status, said in refused.items()},
    }


def _refused(said: str) -> _Json:
    error = {"$ref": "#/components/schemas/Error"}
    return {"description": said, "content": {FORMS["json"]: {"schema": error}}}


def _content(question: Question, form: str) -> _Json:
    if form != "json":
        return {"schema": {"type": "string"}}
    return {"schema": {"$ref": f"#/components/schemas/{title_of(question.document)}"}}


def _parameters(question: Question) -> list[_Json]:
    return [
        {
            "name": name,
            "in": "query",
            "required": name in question.needed,
            "schema": schema_named(name, setting),
        }
        for name, setting in question.settings.items()
    ]


def _how(question: Question) -> list[_Json]:
    forms = {"enum": list(question.forms), "description": "The form; it counts before Accept."}
    lengths = {"enum": ["short", "standard", "full"], "description": "How long a page is."}
    wanted = {"format": forms} | ({"length": lengths} if question.has_length else {})
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in wanted.items()
    ]


def _bodies(question: Question) -> _Json:
    taken: _Json = {FORMS["json"]: {"schema": body_schema(question)}}
    if question.text:
        taken[FORMS["text"]] = {"schema": {"type": "string"}}
    return taken


def body_schema(question: Question) -> _Json:
    """Describe the object that states the settings of a question."""
    return {
        "type": "object",
        "required": list(question.needed),
        "additionalProperties": False,
        "properties": {
            name: schema_named(name, setting) for name, setting in question.settings.items()
        },
    }


def _bulk() -> _Json:
    names = {"enum": list(QUESTIONS), "default": "estimate", "description": "What each line asks."}
    lines = {"schema": {"type": "string", "description": "An object on each line; id is kept."}}
    return {
        "operationId": "bulk_post",
        "summary": "A line in, a line out: its id, the document, and what is wrong with it alone.",
        "parameters": [{"name": "question", "in": "query", "required": False, "schema": names}],
        "requestBody": {"required": True, "content": {"application/x-ndjson": lines}},
        "responses": {
            "200": {
                "description": "Lines of JSON, in order.",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            },
            **{status: _refused(_REFUSALS[status]) for status in ("421", "422")},
        },
    }


def _about(name: str, said: str, form: str) -> _Json:
    kind = "object" if form == "json" else "string"
    answer = {"description": said, "content": {FORMS[form]: {"schema": {"type": kind}}}}
    told: Mapping[str, _Json] = {"200": answer, "421": _refused(_REFUSALS["421"])}
    return {"operationId": f"{name}_get", "summary": said, "responses": dict(told)}


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

    ``names`` is what is known of each setting, which the page offers while one types.
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
