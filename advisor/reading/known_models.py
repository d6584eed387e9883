"""Models of the knowledge base by their own names, in the tuning that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.index import index_of, model_key, model_words
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models.resolution import model_from_record
from advisor.models.stored_tensors import Model


class ModelRead(Struct, frozen=True):
    """What a text names."""

    model: Model
    precision: str = ""
    """The format that the name itself says; a tag's default stands in the model alone."""
    said: tuple[str, ...] = ()
    """How it was read, a sentence; nothing where the name is known just so."""
    others: tuple[str, ...] = ()
    """Known models that the name could mean too."""
    mixed: bool = False
    """The name's format is a maker's own mix, of which the file may be smaller or larger."""


def known_model(knowledge: Knowledge, text: str) -> Model | None:
    """Give a known model under its own name, alias or repository; the tuning asked for counts."""
    index = index_of(knowledge)["models"]
    name = index["hf"].get(text.casefold())
    if name is None and "/" not in text:
        exact = index["exact"].get(model_key(text), ())
        name = exact[0] if len(exact) == 1 else None
    if name is None:
        return None
    asked = "instruct" if tells_instruct(text) else ""
    return as_tuned(knowledge, knowledge.models[name], asked)


_INSTRUCT: Final = frozenset({"instruct", "chat", "it"})
"""What a known name is looked over for without the file of words."""


def tells_instruct(text: str) -> bool:
    """Whether a name says that the model answers instructions."""
    return not _INSTRUCT.isdisjoint(model_words(text))


_TUNED_ENDINGS: Final = ("Instruct", "it", "Chat", "Chat-hf", "Instruct-hf")


def tuning_of(tokens: Sequence[str], tunings: Mapping[str, str]) -> str:
    """Give the first tuning that the words of a name tell, or nothing."""
    return next((tunings[word] for word in tokens if tunings.get(word)), "")


def has_tuning(record: ModelRecord, tuning: str) -> bool:
    """Whether a record's repository is in this tuning; none asked for is any."""
    own = model_words((record.hf_id or "").rpartition("/")[2])
    return not tuning or (_INSTRUCT.isdisjoint(own) != (tuning == "instruct"))


def as_tuned(knowledge: Knowledge, record: ModelRecord, tuning: str) -> Model:
    """Give the model in the tuning that was asked for, where that is another repository."""
    found = None if has_tuning(record, tuning) else tuned_of(record, tuning, knowledge)
    return found or model_from_record(record, knowledge)


def tuned_of(record: ModelRecord, tuning: str, knowledge: Knowledge) -> Model | None:
    """Find the publisher's repository of a model in another tuning, in the public list."""
    publisher, _, own = (record.hf_id or "").partition("/")
    if tuning != "instruct" or not own:
        return None
    from advisor.reading.public_list import exact  # noqa: PLC0415  seldom

    for ending in _TUNED_ENDINGS:
        listed = exact(f"{publisher}/{own.removesuffix('-hf')}-{ending}")
        if listed is not None:
            model = model_from_record(record, knowledge)
            return replace(model, name=listed.name, hf_id=listed.hf_id)
    return None
