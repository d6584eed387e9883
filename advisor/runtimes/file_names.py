"""Names of the files and folders that commands load, made from a model and a format."""

from __future__ import annotations

import re

from advisor.knowledge.types import Format
from advisor.models.stored_tensors import Model
from advisor.scenario.capability import seen_gguf

_NOT_WORD = re.compile(r"[^A-Za-z0-9.]+")


def folder_name(model: Model, precision: Format) -> str:
    """Name a checkpoint in a format of its own: those are downloads of their own."""
    return f"{file_word(model.name)}-{_words(precision.name)}"


def file_word(name: str) -> str:
    """A model's name as part of a file name: no separators, no leading dash."""
    return name.replace("/", "-").replace("\\", "-").lstrip("-") or "model"


def _words(text: str) -> str:
    return _NOT_WORD.sub("-", text).strip("-")


def gguf(model: Model, precision: Format) -> str:
    """Name the GGUF file: the one that is there, else one named after model and format."""
    stored = model.stored
    if stored and stored.kind == "gguf" and stored.format_name == precision.name:
        return file_word(stored.files[0].name)
    kind = {"FP16": "F16", "FP32": "F32"}.get(precision.name, precision.name)
    return f"{file_word(model.name)}-{kind.split(' ')[0]}.gguf"


def own_gguf(model: Model, precision: Format) -> str | None:
    """Name the GGUF file where none was seen that can be downloaded."""
    return None if seen_gguf(model, precision) else gguf(model, precision)


def ollama_from(model: Model, precision: Format) -> str:
    """Name what Ollama builds on: a tag of its library, a repository, else a file."""
    from advisor.reading.format_patterns import tag_of  # noqa: PLC0415  of one framework

    if model.hf_id and not model.stored and (tag := tag_of(model.name, precision.name)):
        return tag
    seen = seen_gguf(model, precision)
    return f"hf.co/{seen}" if seen else f"./{gguf(model, precision)}"


def projector(model: Model) -> str | None:
    """Name the file for images, which comes with a download; None where the model reads none."""
    return f"mmproj-{file_word(model.name)}.gguf" if model.vision_parameters else None
