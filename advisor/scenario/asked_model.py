"""The model that a request names: a known name, a name that is read, or files on disk."""

from __future__ import annotations

from pathlib import Path

from advisor.errors import RequestError
from advisor.knowledge.types import Knowledge
from advisor.models.resolution import model_from_path
from advisor.models.stored_tensors import Model
from advisor.reading.known_models import ModelRead
from advisor.reading.model_names import read_model

_MODEL_FILES = frozenset({".json", ".gguf", ".safetensors"})


def find_model_named(text: str, knowledge: Knowledge) -> Model:
    """Find a model by what people call it, or as a folder or file, see ``model_named``.

    Raises:
        UserError: Unknown, or a file that cannot be read.
    """
    return model_named(text, knowledge).model


def model_named(text: str, knowledge: Knowledge) -> ModelRead:
    """Read the name of a model (``advisor.reading``), or its files where the text is a path.

    A known name goes before a folder of that name; write ``./name`` for the folder. The name of
    a weight file that is not here is read as any name.

    Raises:
        UserError: Unknown, or a file that cannot be read.
    """
    if _is_path(text):
        return (
            _from_files(text)
            if _exists(text) or not _is_file_name(text)
            else _of_file_name(text, knowledge)
        )
    try:
        return read_model(knowledge, text)
    except RequestError:
        if not _is_folder(text):
            raise
    return _from_files(text)


def _of_file_name(text: str, knowledge: Knowledge) -> ModelRead:
    try:
        return read_model(knowledge, text)
    except RequestError:
        return _from_files(text)


def _is_file_name(text: str) -> bool:
    """Whether a text is the bare name of a weight file, or such a file of a repository."""
    return text.endswith((".gguf", ".safetensors")) and not text.startswith((".", "/", "~", "\\"))


def _from_files(text: str) -> ModelRead:
    path = Path(text)
    if not _is_folder(text) and path.suffix not in _MODEL_FILES:
        what = "not a model file" if path.is_file() else "no such folder"
        raise RequestError(
            f"{text}: {what}",
            hint="Give a folder with a config.json, a .gguf or a .safetensors file.",
        )
    return ModelRead(model_from_path(path))


def _is_path(text: str) -> bool:
    """Whether a text can only be a path: ``publisher/model`` is a Hugging Face id."""
    return text.startswith((".", "/", "~")) or Path(text).suffix in _MODEL_FILES or "\\" in text


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _is_folder(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):
        return False
