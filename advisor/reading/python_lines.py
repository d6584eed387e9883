"""Python that loads a model: ``from_pretrained`` of transformers, ``LLM(...)`` of vLLM."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from advisor.errors import RequestError
from advisor.knowledge.flags import IN_PYTHON, Flag, flags_of
from advisor.reading.command_lines import Item, Pasted, pasted_of, visible_cards
from advisor.reading.shell import invocations

_LOADS = re.compile(r"\.from_pretrained\(|\bLLM\(")
_HEREDOC = re.compile(r"(?P<line>[^\n]*)<<\s*-?['\"]?(\w+)['\"]?\n(?P<body>.*?)\n\2\s*$", re.DOTALL)
_NO_MODEL = re.compile(r"tokenizer|processor|config", re.IGNORECASE)


def loads_in_python(text: str) -> bool:
    """Whether a text is Python that loads a model."""
    return bool(_LOADS.search(text))


def read_python(text: str) -> Pasted:
    """Read what a script loads, with which settings.

    Raises:
        RequestError: It is not Python.
    """
    variables: Mapping[str, str] = {}
    if matched := _HEREDOC.search(text.strip()):
        text = matched["body"]
        variables = next((one.variables for one in invocations(matched["line"])), {})
    tree = _parsed(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    served = next((call for call in calls if _name(call.func).endswith("LLM")), None)
    tool = "vllm serve" if served else IN_PYTHON
    items = list(_of_vllm(served) if served else _of_transformers(tree, calls))
    return pasted_of(tool, items, visible_cards(variables))


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(re.sub(r"(?m)^>>> |^\.\.\. ", "", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise RequestError(
            "this is neither a command nor Python that can be read", hint="Paste it whole."
        ) from None


def _name(node: ast.expr) -> str:
    return ast.unparse(node)


def _of_vllm(call: ast.Call) -> Iterator[Item]:
    known = flags_of("vllm serve")
    for place in call.args[:1]:
        yield _item("model", _text(place), known.get("--model"))
    for key in call.keywords:
        if key.arg:
            flag = known.get(f"--{key.arg.replace('_', '-')}")
            yield _item(key.arg, _text(key.value), flag)


def _of_transformers(tree: ast.Module, calls: list[ast.Call]) -> Iterator[Item]:
    known = flags_of(IN_PYTHON)
    loaded = [call for call in calls if _name(call.func).endswith(".from_pretrained")]
    models = [call for call in loaded if not _NO_MODEL.search(_name(call.func))]
    for place, call in enumerate(models):
        named = _text(call.args[0]) if call.args else ""
        yield _item(named, named, known["assistant_model" if place else "model"])
    for name, value in _stated(tree, calls, models):
        if name in known:
            yield _item(name, value, known[name])


def _stated(
    tree: ast.Module, calls: list[ast.Call], models: list[ast.Call]
) -> Iterator[tuple[str, str]]:
    """Give the keywords of loading, generating and quantising, and what a dictionary collects."""
    for call in calls:
        if call in models[:1] or _name(call.func).endswith(("BitsAndBytesConfig", ".generate")):
            yield from ((key.arg, _text(key.value)) for key in call.keywords if key.arg)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            if not isinstance(node.value, ast.Call):
                yield _text(node.targets[0].slice), _text(node.value)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from ((_text(key), _text(value)) for key, value in pairs if key)
        elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.List):
            yield "prompts", _text(node.right)


def _item(name: str, value: str, flag: Flag | None) -> Item:
    if flag and flag.kind == "flag":
        value = {"True": "on", "False": "off"}.get(value, value)
    return Item((name,), flag, value)


def _text(node: ast.expr) -> str:
    """Give a constant as text; ``torch.float16`` is ``float16``."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return _name(node)
