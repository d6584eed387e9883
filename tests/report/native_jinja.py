"""jinja2's own rendering of the same templates, to hold the program's writing against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

from advisor.report.template_reader import TemplateReader
from advisor.report.template_writer import ESCAPED, PICKS, first_upper, picked


class _LookedUp(NodeTransformer):
    """Takes names with a dot, which no variable of jinja2 can have, out of its context."""

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802 - as jinja2 calls it
        if "." not in node.name:
            return node
        line = node.lineno
        name = nodes.Const(node.name, lineno=line)
        return nodes.Getitem(nodes.ContextReference(lineno=line), name, "load", lineno=line)


class Native(TemplateReader):
    """Compiles what it reads, as jinja2 does."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(folders)
        self.undefined = jinja2.StrictUndefined
        self.autoescape = lambda name: bool(name and name.endswith(ESCAPED))
        self.filters["first_upper"] = first_upper
        self.tests[PICKS] = picked

    def written(self, name: str, given: Mapping[str, object]) -> str:
        """Render a template."""
        tree: nodes.Template = _LookedUp().visit(self.checked(name))
        code = self.compile(tree, name, f"templates/{name}")
        made = jinja2.Template.from_code(self, code, {})
        return "".join(made.root_render_func(Context(self, dict(given), name, made.blocks)))
