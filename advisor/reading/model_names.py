"""Names of models as people type and paste them: one reader for every command, plan and log.

A text is taken apart (publisher, name, tag, file, format) and every word of it must be accounted
for: by a model's own name, or as maker, packer, tuning, fine-tune or filler (``words``). What
leaves a word over is refused with the candidates; no text is read as another model.
"""

from __future__ import annotations

from advisor.errors import UserError
from advisor.knowledge.index import by_text
from advisor.knowledge.types import Knowledge
from advisor.reading.known_models import ModelRead, known_model


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
