"""Every repository of the public list, asked for as people spell it: its own size, or a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.models.architectures import keeps_nothing
from advisor.models.stored_tensors import Model
from advisor.reading import read_model
from advisor.reading.public_list import PublicModel, bare_key, every, every_named, exact
from advisor.reading.public_made import SAME_WITHIN
from advisor.reading.published import (
    is_draft,
    is_packed,
    own_record,
    recorded_repositories,
    sizes_said,
    unpacked_name,
)
from tests.reading.test_public_sizing import sampled, stored_with

KNOWN = load_knowledge()
EVERY = 8
"""Of the sample in six spellings; ``benchmarks/public_names.py`` reads all of the list so."""
PARTS = 8
"""In which all of the list is read, so that workers share it."""
MOST_REFUSED = 0.02

PADDED = 0.03
"""How far the entries of a vocabulary, which some pad, lie apart in one model."""
MISCOUNTED = {"openai/whisper-medium": 763_857_920}
"""What the list counts of a part alone, by the model's own files."""


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


def is_right(found: Model | None, public: PublicModel) -> bool:
    """Whether it is refused, or is the repository as far as the list tells what that is."""
    return found is None or any(_is_of(found, one) for one in (public, *_meant(found, public)))


def _is_of(found: Model, public: PublicModel) -> bool:
    """Whether it has the parameters counted; of what nobody counted widths and size in the name."""
    stated, said = public.parameters_raw or 0, sizes_said(public.name)
    if public.hf_id in MISCOUNTED:
        stated = MISCOUNTED[public.hf_id]
    if stated and any(abs(s - stated) <= SAME_WITHIN * stated for s in stored_with(found)):
        return True
    counted = not is_packed(public) and stated > min(said, default=0) / 2
    if counted and not keeps_nothing(public.architecture):
        return False
    shape = found.shape
    wide = (
        (public.num_hidden_layers, shape.layers),
        (public.hidden_size, shape.hidden),
        (public.vocab_size, shape.vocab),
    )
    alike = all(listed is None or abs(listed - own) <= PADDED * own for listed, own in wide)
    layers = found.parameters - found.vision_parameters - 2 * shape.vocab * shape.hidden
    of = ((layers, found.parameters), (found.active_parameters,) * 2)
    named = (0.85 * least <= size <= 1.15 * most for size in said for least, most in of)
    return alike and (not said or is_draft(public) or any(named))


def _meant(found: Model, public: PublicModel) -> Iterator[PublicModel]:
    """Give what a bare name may mean: a namesake, what was packed, a repository's address."""
    yield from every_named(public.name)
    yield from every_named(unpacked_name(public.name)) if is_packed(public) else ()
    own = exact(found.hf_id or "")
    if own and bare_key(own.hf_id.replace("/", "-")) == bare_key(public.name):
        yield own


@pytest.mark.parametrize("part", range(PARTS))
def test_every_repository_of_the_list_is_itself_or_refused(part: int) -> None:
    every_one = list(every())[part::PARTS]
    found = [(public, read(public.hf_id)) for public in every_one]
    looked_up = {one.repository for one in recorded_repositories()}
    models = [
        (model, one)
        for one, model in found
        if model and own_record(one.hf_id) is None and one.hf_id not in looked_up
    ]
    assert [one.hf_id for model, one in models if not is_right(model, one)] == []
    names = [((model.hf_id or "").casefold(), one.hf_id.casefold()) for model, one in models]
    assert [pair for pair in names if pair[0] != pair[1]] == []
    assert sum(model is None for _, model in found) <= MOST_REFUSED * len(every_one)


def test_no_spelling_of_a_repository_is_another_model() -> None:
    wrong = []
    for public in sampled()[::EVERY]:
        for text in spellings(public):
            found = read(text)
            if not is_right(found, public):
                wrong.append((text, found and found.name))
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("GLM-4.6V-FP8", 107_710_927_360),
        ("LFM2.5-2.6B-MLX-bf16", 2_697_198_592),
        ("S1-mini-MLX-bf16", 596_049_920),
        ("CohereLabs/command-a-plus-05-2026-fp8", 218_801_789_168),
        ("facebook/opt-13b", 12_853_473_280),
        ("facebook/bart-large", 406_291_456),
        ("GLM-4.6V", 107_710_927_360),
        ("Qwen3.8-27B-NVFP4-DFlash2", None),
        ("Huihui-LFM2.5-8B-A1B-abliterated-MTP-NVFP4", None),
        ("paligemma 3b pt 448", 2_924_351_216),
        ("mlx-community/Nemotron-3-Ultra-550B-A55B-4bit", 549_308_993_536),
        ("sahilchachra/Leanstral-1.5-119B-A6B-NVFP4", None),
    ],
)
def test_sizes_are_those_of_the_list_or_refused(text: str, parameters: int | None) -> None:
    found = read(text)
    assert (found and found.parameters) == parameters


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
