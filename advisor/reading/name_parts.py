"""A text that names a model, taken apart: publisher, name, tag and file; nothing is looked up.

Forms: ``name``, ``name:tag`` as Ollama writes it, ``publisher/name[@revision][:file or format]``,
``hf.co/...``, addresses of the public hub and of Ollama's library, and names of weight files.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from advisor.errors import RequestError
from advisor.models.hub.names import has_hub_form, is_address, parse

_LIBRARY: Final = re.compile(r"(?:https?://)?(?:www\.)?ollama\.com(?:/library)?/", re.IGNORECASE)
_HUB_HOST: Final = re.compile(r"(?:www\.)?(?:hf\.co|huggingface\.co)/", re.IGNORECASE)
_HUB: Final = "https://huggingface.co"
_ENDING: Final = re.compile(r"\.(gguf|safetensors|bin|pth?)$", re.IGNORECASE)
_SHARD: Final = re.compile(r"-\d{5}-of-\d{5}$")
_LONGEST: Final = 300


class NameParts(Struct, frozen=True):
    """The parts of a text that names a model."""

    name: str
    publisher: str = ""
    tag: str = ""
    """What stands behind a colon and is no file: Ollama's tag, or a format."""
    file: str = ""
    """The name of a weight file in the repository, less ending and number of its part."""
    ending: str = ""
    """``gguf`` ... where the text names a weight file."""

    @property
    def may_be_ollama(self) -> bool:
        """Whether Ollama's library may have this name."""
        return not self.publisher and not self.ending

    @property
    def is_gguf(self) -> bool:
        """Whether what it names holds GGUF files."""
        words = re.findall(r"[a-z0-9]+", self.name.casefold())
        return self.ending == "gguf" or "gguf" in words


def parts_of(text: str) -> NameParts:
    """Take a text apart.

    Raises:
        RequestError: It is an address of something else.
    """
    bare = text.strip().strip("'\"")
    if len(bare) > _LONGEST:
        return NameParts(bare)
    for host in (_LIBRARY, _HUB_HOST):
        found = host.match(bare)
        bare = bare[found.end() :] if found else bare
    if is_address(bare):
        return _on_hub(bare)
    if "/" in bare and has_hub_form(bare):
        return _on_hub(bare)
    if "/" in bare:
        raise RequestError(f"'{bare[:200]}' is no name of a model", hint="Write publisher/name.")
    name, _, tag = bare.partition(":")
    ending = _ENDING.search(bare)
    if ending:
        return NameParts(_stem(bare.replace(":", " ")), ending=ending[1].casefold())
    return NameParts(name.strip(), tag=tag.strip())


def _on_hub(text: str) -> NameParts:
    found = parse(text, _HUB)
    publisher, _, name = found.repository.rpartition("/")
    wanted = (found.wanted or found.folder).rpartition("/")[2]
    ending = _ENDING.search(wanted)
    if ending:
        return NameParts(name, publisher, file=_stem(wanted), ending=ending[1].casefold())
    return NameParts(name, publisher, tag=wanted)


def _stem(file: str) -> str:
    return _SHARD.sub("", _ENDING.sub("", file))
