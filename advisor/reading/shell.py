"""What starts a program: shell text taken apart, and files as the shell lines they stand for.

Line ends, quotes, variables, wrappers and containers; of files those of compose and Kubernetes,
whole or in part, units of systemd, presets of ``llama-server`` and the ``config.yml`` of TabbyAPI.
"""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from advisor.errors import RequestError
from advisor.knowledge.programs import TAKES_NONE, flags_of
from advisor.yamlfile import Node, parse_yaml

_CONTINUED = re.compile(r"[ \t]*(?:[\\^`][ \t]*\r?\n[ \t]*|\r?\n[ \t]*(?=--?[a-zA-Z]))")
"""A line that goes on: a backslash, the caret of cmd.exe, the backtick of PowerShell, or flags
alone on the next."""
_PROMPT = re.compile(
    r"^\s*(?:(?:[$>%]|PS [^>\n]*>|\[[^\]\n]*\][$#]|[\w.-]+@[\w.-]+:[^$#\n]*[$#])\s+"
    r"|[A-Za-z]:\\[^>\n]*>\s*)"
)
_WINDOWS = re.compile(r"[A-Za-z]:\\|(?<!\S)\.{1,2}\\|\\\w+\.(?:exe|gguf)", re.IGNORECASE)
_VARIABLE = re.compile(r"(?:\$env:)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_POWERSHELL = re.compile(r"\$(?:env:)?(\w+)\s*=\s*")
_USED = re.compile(r"\$(?:\{([\w-]+)\}|(\w+))|%(\w+)%")
"""A variable where its value is used."""
_ENDS = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "2>&1", "2>", "<"})
_DECLARES = frozenset({"export", "set", "setx", "env"})


class Invocation(Struct, frozen=True):
    """One command: its variables, its words, and the file its output goes to."""

    variables: Mapping[str, str]
    words: tuple[str, ...]
    output: str = ""


def invocations(text: str) -> Sequence[Invocation]:
    """Take a pasted text apart into its commands.

    Variables that a line declares hold for those that follow.

    Raises:
        RequestError: A quotation mark is not closed.
    """
    kept: dict[str, str] = {}
    found = []
    for line in _lines(text):
        for words in _split(_words(_USED.sub(lambda used: _value(used, kept), line))):
            variables, rest, output = _parts(words)
            if rest:
                found.append(Invocation({**kept, **variables}, tuple(rest), output))
            else:
                kept.update(variables)
    return found


def _value(used: re.Match[str], kept: Mapping[str, str]) -> str:
    """Give what a line before says a variable is; as it stands where none does."""
    return kept.get(used[1] or used[2] or used[3], used[0])


def _lines(text: str) -> Iterator[str]:
    for line in _CONTINUED.sub(" ", text).splitlines():
        shown = _POWERSHELL.sub(r"\1=", _PROMPT.sub("", line)).strip()
        if shown and not shown.startswith(("#", "```", "REM ", "::")):
            yield shown


def _words(line: str) -> Sequence[str]:
    reader = shlex.shlex(line, posix=True, punctuation_chars=False)
    reader.whitespace_split = True
    reader.commenters = ""
    if _WINDOWS.search(line):
        reader.escape = ""
    try:
        return list(reader)
    except ValueError:
        raise RequestError(
            f"a quotation mark is not closed in: {line[:80]}", hint="Paste the whole command."
        ) from None


def _split(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Divide a line at its operators; what follows ``>`` stays with what is written."""
    part: list[str] = []
    for word in words:
        if word in _ENDS - {">", ">>"}:
            yield part
            part = []
        elif word.endswith(";") and len(word) > 1:
            yield [*part, word[:-1]]
            part = []
        elif word.startswith("#"):
            break
        else:
            part.append(word)
    yield part


def _parts(words: Sequence[str]) -> tuple[dict[str, str], Sequence[str], str]:
    """Give the variables before a command, its words, and where it writes to."""
    variables: dict[str, str] = {}
    rest = list(words)
    while rest and (rest[0].casefold() in _DECLARES or _VARIABLE.fullmatch(rest[0])):
        if matched := _VARIABLE.fullmatch(rest.pop(0)):
            variables[matched[1]] = matched[2]
    output = ""
    for sign in (">", ">>"):
        if sign in rest:
            at = rest.index(sign)
            output = "".join(rest[at + 1 : at + 2])
            rest = rest[:at]
    return variables, rest, output


def said_before(words: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """Read what a container is given before its image: variables, and its cards.

    Returns:
        Variables, and the value of ``--gpus`` (``all``, a number, ``device=0,1``) or None.
    """
    variables, cards = {}, None
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        if name == "--gpus":
            cards = (value or following).strip("\"'")
        stated = following if word in {"-e", "--env"} else value if name == "--env" else word
        if matched := _VARIABLE.fullmatch(stated):
            variables[matched[1]] = matched[2]
    return variables, cards


def mounts(words: Sequence[str]) -> Mapping[str, str]:
    """Read which folders a container is given: the path inside, and the one outside."""
    found: dict[str, str] = {}
    for word, after in zip(words, (*words[1:], ""), strict=True):
        name, _, value = word.partition("=")
        if name in {"-v", "--volume"} and (matched := _MOUNT.fullmatch(value or after)):
            found[matched[2].rstrip("/")] = matched[1].rstrip("/")
        elif name == "--mount":
            said = dict(one.partition("=")[::2] for one in (value or after).split(","))
            outside = said.get("source") or said.get("src")
            inside = said.get("target") or said.get("dst") or said.get("destination")
            found |= {inside.rstrip("/"): outside.rstrip("/")} if inside and outside else {}
    return found


_MOUNT = re.compile(r"((?:[A-Za-z]:)?[^:]+):(/[^:]*)(?::[a-zA-Z,]+)?")


_LOADS = re.compile(
    r"\.from_pretrained\(|\b(?:LLM|Llama|Engine|pipeline)\(|\bmlx_\w+\.load\(|^from mlx_\w+ import",
    re.MULTILINE,
)
_MOST_CUTS = 40
_HEREDOC = re.compile(r"(?P<line>[^\n]*)<<\s*-?['\"]?(\w+)['\"]?\n(?P<body>.*?)\n\2\s*$", re.DOTALL)


class Python(Struct, frozen=True):
    """Python that loads a model, with its names put in, and the variables of the line before."""

    tree: ast.Module
    imported: Mapping[str, str]
    """A name that is imported -> with its module."""
    variables: Mapping[str, str]


def python_of(text: str) -> Python | None:
    """Parse Python that loads a model; None where the text is none.

    Raises:
        RequestError: It looks so and cannot be read.
    """
    if not _LOADS.search(text):
        return None
    variables: Mapping[str, str] = {}
    if matched := _HEREDOC.search(text.strip()):
        text = matched["body"]
        variables = next((one.variables for one in invocations(matched["line"])), {})
    tree = _parsed(text)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {n.asname or n.name: f"{one.module}.{n.name}" for one in found for n in one.names}
    return Python(_Named(tree).visit(tree), imported, variables)


class _Named(ast.NodeTransformer):
    """Puts what a name is once set to, where it is a constant, for the name."""

    def __init__(self, tree: ast.Module) -> None:
        every = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
        said = [(one.targets[0], one.value) for one in every if isinstance(one.value, ast.Constant)]
        self._said = {name.id: value for name, value in said if isinstance(name, ast.Name)}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._said.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _parsed(text: str) -> ast.Module:
    """Parse a script, or what can be read of it from the line on that loads the model."""
    plain = re.sub(r"(?m)^>>> |^\.\.\. |^[%!]pip .*$", "", text)
    lines = plain.splitlines()
    first = next((at for at, line in enumerate(lines) if _LOADS.search(line)), 0)
    cut = (lines[first:last] for last in range(len(lines), first, -1)[:_MOST_CUTS])
    for part in (plain, *(textwrap.dedent("\n".join(one)) for one in cut)):
        try:
            return ast.parse(part)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    raise RequestError(
        "this is neither a command nor Python that can be read", hint="Paste it whole."
    )


_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "sudo"})
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def program_name(word: str) -> str:
    """The name of a program without its folder and ending."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


def image_at(words: Sequence[str], name: str) -> int:
    """Find the image of a container among its words; -1 where it is not this one."""
    if not words or program_name(words[0]) not in _CONTAINERS:
        return -1
    found = (i for i, word in enumerate(words) if name in word and not word.startswith("-"))
    return next(found, -1)


def visible_cards(variables: Mapping[str, str], cards: str | None = None) -> int | None:
    """Count the cards that are left visible; None: all of the machine."""
    listed = next((variables[name] for name in _VISIBLE if name in variables), None)
    if listed is None and cards and cards != "all":
        if cards.isdigit():
            return int(cards)
        listed = cards.partition("=")[2]
    if listed is None:
        return None
    return len([one for one in listed.split(",") if one.strip() not in {"", "-1"}])


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
    if any(map(_UNIT.match, lines)):
        return "\n".join(_of_unit(_CONTINUED.sub(" ", text)))
    if lines and _SECTION.fullmatch(lines[0]) and any(map(_PRESET.fullmatch, lines)):
        return _preset(lines)
    if not lines or not _YAML.match(lines[0]):
        return ""
    document = _plain(parse_yaml(textwrap.dedent(text).encode(), "the pasted file", RequestError))
    kept = _inside(document, "macros")
    started = _in_document(document)
    return "\n".join(_USED.sub(lambda used: str(_value(used, kept)), one) for one in started)


_UNIT = re.compile(r"\s*(ExecStart|Environment)=[-@:+!]*(.*)")
"""What a unit of systemd starts, and with which variables."""


def _of_unit(text: str) -> Iterator[str]:
    """Give the variables of a unit, then what it starts; one that starts nothing is Ollama's."""
    said = [(found[1], found[2]) for found in map(_UNIT.match, text.splitlines()) if found]
    variables = [f"export {value}" for key, value in said if key == "Environment"]
    yield from variables
    started = [value for key, value in said if key == "ExecStart" and value]
    yield from started or ["ollama serve"] * any("OLLAMA_" in one for one in variables)


def _plain(node: Node) -> Any:
    """Give what YAML holds without its places; what is written as a scalar stays text."""
    if isinstance(node.value, dict):
        return {key: _plain(one) for key, one in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(one) for one in node.value]
    return node.value if isinstance(node.value, str) else node.text or ""


def _in_document(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _in_document(one)
    elif isinstance(node, dict):
        model = node.get("model")
        if isinstance(model, dict) and "model_name" in model:
            yield _of_tabby(node)
        elif isinstance(node.get("cmd"), str):
            yield node["cmd"]
        elif any(key in node for key in ("image", *_STARTS)):
            yield _of_container(node)
        else:
            for one in node.values():
                yield from _in_document(one)


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
    words: Sequence[str] = [word for key in _STARTS for word in _split_words(node.get(key))]
    if words and words[0] in _SHELLS and "-c" in words[1:3]:
        words = _split_words(words[-1])
    image = str(node.get("image") or "")
    before = [*_cards(node), *(word for one in _variables(node) for word in ("-e", one))]
    return shlex.join(["docker", "run", *before, *filter(None, [image]), *words])


def _split_words(said: object) -> Sequence[str]:
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
