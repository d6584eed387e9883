"""Every repository of the public list, asked for as people spell it: its own size, or a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.models.stored_tensors import Model
from advisor.reading.known_models import known_model
from advisor.reading.model_names import read_model
from advisor.reading.public_list import PublicModel, every_named
from advisor.reading.public_made import SAME_WITHIN
from advisor.reading.public_sizing import model_of
from advisor.reading.published import is_packed, unpacked_name
from tests.reading.test_public_sizing import sampled

KNOWN = load_knowledge()
EVERY = 8
"""Of the sample; ``benchmarks/public_names.py`` reads all of the list."""


def spellings(public: PublicModel) -> Iterator[str]:
    """Give names of a repository that differ in case, separators, words around it."""
    yield public.hf_id
    yield public.hf_id.upper()
    yield f"https://huggingface.co/{public.hf_id}/tree/main"
    yield public.name
    yield re.sub(r"[-_]+", " ", public.name).lower()
    yield f"hf.co/{public.hf_id}:Q5_K_M"


def read(text: str) -> Model | None:
    try:
        return read_model(KNOWN, text).model
    except UserError:
        return None


def sizes(public: PublicModel) -> set[int]:
    """Give what is right: as sized, as the list counts; of a packed copy, as what was packed."""
    less = (unpacked_name(public.name), re.sub("[-_][^-_]+$", "", public.name))
    bases = [base for name in less if (base := read(name))] if is_packed(public) else []
    right = {public.parameters_raw or 0, *(base.parameters for base in bases)}
    right |= {base.parameters for base in _meant(public)}
    try:
        if known := known_model(KNOWN, public.name):
            right.add(known.parameters)
        own = model_of(public, KNOWN)
    except UserError:
        return right
    return right | {own.parameters, own.parameters - own.vision_parameters}


def _meant(public: PublicModel) -> Iterator[Model]:
    """Give what a bare name may mean before this repository: one that more take, or an address."""
    publisher, _, name = public.name.partition("-")
    for hf_id in (every_named(public.name)[0].hf_id, f"{publisher}/{name}"):
        if hf_id != public.hf_id and (found := read(hf_id)):
            yield found


def is_right(found: Model | None, public: PublicModel, right: set[int]) -> bool:
    """Whether it has these parameters, with the head that drafts; or the very widths listed."""
    if found is None:
        return True
    shape, listed = found.shape, (public.num_hidden_layers, public.hidden_size, public.vocab_size)
    head = shape.mtp_layers * (shape.counts.layers[-1] + 2 * shape.hidden**2) if shape.counts else 0
    sizes = (found.parameters, found.parameters + head)
    near = any(abs(size - one) <= SAME_WITHIN * one for one in right for size in sizes)
    return near or (shape.layers, shape.hidden, shape.vocab) == listed


def test_no_spelling_of_a_repository_is_another_model() -> None:
    wrong = []
    for public in sampled()[::EVERY]:
        right = sizes(public)
        for text in spellings(public):
            found = read(text)
            if not is_right(found, public, right):
                wrong.append((text, found and found.name))
    assert wrong == []


def test_a_bare_name_with_a_format_is_the_repository_that_has_it_or_refused() -> None:
    own = read("gemma-3-12b-it-bf16")
    assert own
    assert own.hf_id == "mlx-community/gemma-3-12b-it-bf16"
    with pytest.raises(UserError, match="may mean gemma-4-E4B-it of 8 billion"):
        read_model(KNOWN, "gemma-4-e4b-it-abliterated-bf16")
    packed = read("Llama-3.2-3B-Instruct-AWQ")
    assert packed
    assert packed.parameters == 3_212_749_824
    plain = read("microsoft-Phi-3-mini-4k-instruct")
    assert plain
    assert plain.hf_id == "microsoft/Phi-3-mini-4k-instruct"


def test_widths_tell_a_packed_copy_whose_architecture_nobody_states() -> None:
    found = read("lmstudio-community/NVIDIA-Nemotron-3-Nano-30B-A3B-MLX-5bit")
    assert found
    assert found.parameters == 31_577_937_344


def test_its_own_name_is_read_as_the_repository() -> None:
    for public in sampled()[::EVERY]:
        for text in (public.hf_id, public.hf_id.lower()):
            found = read(text)
            assert found is None or (found.hf_id or "").lower() == public.hf_id.lower()
