"""Files that start a program, written as the shell lines that they stand for.

Compose files and manifests of Kubernetes, whole or in part, presets of ``llama-server`` and the
``config.yml`` of TabbyAPI.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.errors import RequestError
from advisor.knowledge.programs import TAKES_NONE, flags_of
from advisor.yamlfile import Node, parse_yaml

_YAML = re.compile(r"\s*(?:-{3}\s*|-\s+)?[\"']?[A-Za-z][\w.-]*[\"']?\s*:(?:\s|$)")
_SECTION = re.compile(r"\s*\[([^\]\n]+)\]\s*")
_PRESET = re.compile(r"\s*([\w-]+)\s*=\s*(.*)")
_STARTS = ("entrypoint", "command", "args")
"""What is started and with which words, in the order in which they stand on a command line."""
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "ash", "zsh"})
_OFF = frozenset({"off", "false", "no", "0"})


def as_lines(text: str) -> str:
    """Give the shell lines of a file that starts a program; empty where the text is none.

    Raises:
        RequestError: It looks like one and cannot be read.
    """
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    if lines and _SECTION.fullmatch(lines[0]) and any(map(_PRESET.fullmatch, lines)):
        return _preset(lines)
    if not lines or not _YAML.match(lines[0]):
        return ""
    document = _plain(parse_yaml(textwrap.dedent(text).encode(), "the pasted file", RequestError))
    return "\n".join(_lines(document))


def _plain(node: Node) -> Any:
    """Give what YAML holds without its places; what is written as a scalar stays text."""
    if isinstance(node.value, dict):
        return {key: _plain(one) for key, one in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(one) for one in node.value]
    return node.value if isinstance(node.value, str) else node.text or ""


def _lines(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _lines(one)
    elif isinstance(node, dict):
        model = node.get("model")
        if isinstance(model, dict) and "model_name" in model:
            yield _of_tabby(node)
        elif any(key in node for key in ("image", *_STARTS)):
            yield _of_container(node)
        else:
            for one in node.values():
                yield from _lines(one)


def _of_tabby(node: Mapping[str, Any]) -> str:
    """Write what the sections on models say as the flags of the same names."""
    parts = (node.get(section) for section in ("model", "draft_model"))
    said = {key: value for part in parts if isinstance(part, dict) for key, value in part.items()}
    known = flags_of("TabbyAPI")
    words = ["python", "main.py"]
    for key, value in said.items():
        if (flag := f"--{key.replace('_', '-')}") in known and value not in ("", []):
            words += [flag, *(value if isinstance(value, list) else [value])]
    return shlex.join(words)


def _of_container(node: Mapping[str, Any]) -> str:
    words: Sequence[str] = [word for key in _STARTS for word in _words(node.get(key))]
    if words and words[0] in _SHELLS and "-c" in words[1:3]:
        words = _words(words[-1])
    image = str(node.get("image") or "")
    before = [*_cards(node), *(word for one in _variables(node) for word in ("-e", one))]
    return shlex.join(["docker", "run", *before, *filter(None, [image]), *words])


def _words(said: object) -> Sequence[str]:
    if isinstance(said, list):
        return [str(word) for word in said]
    try:
        return shlex.split(str(said or ""))
    except ValueError:
        return str(said).split()


def _variables(node: Mapping[str, Any]) -> Iterator[str]:
    """Give ``NAME=value`` of ``environment`` (a mapping or a list) and of ``env``."""
    said = node.get("environment") or node.get("env") or ()
    if isinstance(said, dict):
        said = [f"{name}={value}" for name, value in said.items()]
    for one in said:
        if isinstance(one, dict) and "name" in one:
            yield f"{one['name']}={one.get('value', '')}"
        elif isinstance(one, str) and "=" in one:
            yield one


def _cards(node: Mapping[str, Any]) -> Sequence[str]:
    """Say how many cards the container gets, where that is said as a number."""
    limits = _inside(node, "resources", "limits")
    counts = [value for name, value in limits.items() if str(name).endswith("/gpu")]
    devices = _inside(node, "deploy", "resources", "reservations").get("devices") or []
    for one in filter(lambda one: isinstance(one, dict), devices):
        counts += [str(len(one["device_ids"]))] if "device_ids" in one else [one.get("count", "")]
    number = next((str(one) for one in counts if str(one).isdigit()), "")
    return ["--gpus", number] if number else []


def _inside(node: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _preset(lines: Sequence[str]) -> str:
    """Write the first preset of a model as a line of ``llama-server``."""
    known = flags_of("llama-server")
    words, section = ["llama-server"], ""
    for line in lines:
        if found := _SECTION.fullmatch(line):
            if section not in {"", "*", "default"}:
                break
            section = found[1]
        elif found := _PRESET.fullmatch(line):
            words += _as_flag(found[1], found[2].strip(), known)
    return shlex.join(words)


def _as_flag(key: str, value: str, known: Mapping[str, Any]) -> Sequence[str]:
    flag = next((one for one in (f"--{key}", f"-{key}") if one in known), f"--{key}")
    if flag in known and known[flag].kind == TAKES_NONE:
        return [] if value.casefold() in _OFF else [flag]
    return [flag, value]
