"""Names of models as people type and paste them: one reader for every command, plan and log.

A text is taken apart (publisher, name, tag, file, format) and every word of it must be accounted
for: by a model's own name, or as maker, packer, tuning, fine-tune or filler (``words``). What
leaves a word over is refused with the candidates; no text is read as another model.
"""

from __future__ import annotations

from pathlib import Path

from advisor.errors import RequestError, UserError
from advisor.knowledge.index import by_text
from advisor.knowledge.names import find_model
from advisor.knowledge.types import Knowledge
from advisor.reading.known import ModelRead, known_model


@by_text
def read_model(knowledge: Knowledge, text: str) -> ModelRead:
    """Find the model that a text names, with the format that it says.

    Raises:
        UserError: Nothing has this name, several do, or it cannot be sized.
    """
    model = None if _is_tag(text) else known_model(knowledge, text)
    if model is not None:
        return ModelRead(model)
    from advisor.reading.read_names import read_by_words  # noqa: PLC0415  a plain name does without

    return read_by_words(knowledge, text)


def _is_tag(text: str) -> bool:
    """Whether a text may be a tag of Ollama's, which says a format too."""
    return ":" in text and "/" not in text


def is_read(knowledge: Knowledge, text: str) -> bool:
    """Whether a text names a model that is known."""
    try:
        read_model(knowledge, text)
    except UserError:
        return False
    return True


_HINT = "Add --hub to read it from Hugging Face."


def local_model(text: str, knowledge: Knowledge, *, hub: bool, offline: bool) -> str:
    """Give a model's name or path to go on with, reading from the hub where that was asked for.

    A name of the knowledge base and a file on disk go before the hub.

    Raises:
        UserError: The hub does not give it, or it needs the hub and that was not asked for.
    """
    if not hub and not offline:
        if _names_a_hub_file(text) and not is_read(knowledge, text):
            raise RequestError(f"'{text[:200]}' is not on this machine", hint=_HINT)
        return text
    from advisor.models.hub.names import has_hub_form  # noqa: PLC0415  only when asked

    known = not has_hub_form(text) or _exists(text)
    return text if known else _known_or_fetched(text, knowledge, offline=offline)


def _known_or_fetched(text: str, knowledge: Knowledge, *, offline: bool) -> str:
    from advisor.models.hub.models import fetch, repository_of  # noqa: PLC0415

    repository, hint = repository_of(text), ""
    if repository is not None and "/" in repository:
        try:
            find_model(knowledge, repository)
        except RequestError as unknown:
            hint = unknown.hint if unknown.hint.startswith("Did you mean") else ""
        else:
            return repository
    try:
        return str(fetch(text, offline=offline))
    except RequestError as error:
        error.hint = " ".join(filter(None, (error.hint, hint)))
        raise


def _names_a_hub_file(text: str) -> bool:
    """Whether a text is an address, or ``org/name:file.gguf``, which nothing else can mean."""
    if "://" in text:
        return True
    return ":" in text and "/" in text and text.endswith(".gguf") and not _exists(text)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False
