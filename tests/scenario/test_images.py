"""Images of a prompt: their tokens, the memory they are read in, and how programs are told."""

from __future__ import annotations

import pytest

from advisor.errors import RequestError, UserError
from advisor.estimator import estimate_memory
from advisor.reading.pasted_request import asked_by, read_pasted
from advisor.reading.sentences import read_sentence
from advisor.runtimes.commands import command_for
from advisor.scenario import Scenario
from advisor.scenario.images import prompt_tokens, read_size, tokens_of_image
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request, request_from
from tests.reading.test_command_lines import known

SEEING = {"gpu": "RTX 4090", "model": "Qwen2.5-VL-7B-Instruct", "precision": "FP16"}


def scenario(**more: object) -> Scenario:
    return resolve(request_from({**SEEING, "framework": "vLLM", **more}), known())


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("Qwen2.5-VL-7B-Instruct", "1024x1024", 37 * 37),
        ("Qwen3-VL-8B-Instruct", "1920x1080", 60 * 34),
        ("gemma-3-27b-it", "4000x3000", 256),
        ("llava-1.5-7b", "1024x1024", 576),
        ("llava-1.6-13b", None, 2928),
        ("Llama-4-Scout-17B-16E-Instruct", "672x672", 144 * 5),
        ("Mistral-Small-3.1-24B-Instruct-2503", "1540x1540", 55 * 55 + 55),
        ("Qwen2.5-VL-7B-Instruct", "1000 tokens", 1000),
        ("llama-3.1-8b", "1024", None),
    ],
)
def test_tokens_follow_from_the_model(model: str, size: str | None, tokens: int | None) -> None:
    found = resolve(request_from({**SEEING, "model": model, "precision": None}), known()).model
    assert tokens_of_image(found, read_size(size)) == tokens


def test_every_model_that_reads_images_is_counted_or_said_to_be_unknown() -> None:
    unknown = []
    for record in known().models.values():
        if record.modality != "vision":
            continue
        asked = Request(model=record.name, images=2, framework="vLLM")
        try:
            found = resolve(asked, known())
        except UserError:
            continue
        said = " ".join(found.read_as)
        counted = prompt_tokens(found.model, found)
        assert (counted is None) == ("How many tokens an image takes is not known" in said)
        assert counted is None or f"{counted:,} of the " in said
        unknown += [record.name] if counted is None else []
    assert len(unknown) <= 10, unknown


def test_images_take_context_and_memory() -> None:
    plain, seen, many = scenario(), scenario(images=1), scenario(images=8)
    assert plain.context_tokens == 4096
    assert seen.context_tokens == 4096 + 1536
    sizes = [estimate_memory(one, known()) for one in (plain, seen)]
    assert sizes[0].compute_buffer_bytes < sizes[1].compute_buffer_bytes
    assert any("image tower" in line for line in sizes[1].approximate)
    assert prompt_tokens(many.model, many) == 8 * 1369
    wide = scenario(images=1, image_size="4k")
    assert wide.context_tokens > seen.context_tokens


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"images": 2}, "2 images of 1024x1024, as is assumed, take 2,738 of the 6,912 tokens"),
        ({"image_size": "1080p"}, "One image of 1080p takes"),
        ({"images": 2, "text_only": True}, "changes nothing"),
        ({"images": 2, "framework": "TGI", "model": "llama-3.1-8b"}, "changes nothing"),
    ],
)
def test_the_report_says_what_they_take(more: dict[str, object], said: str) -> None:
    assert any(said in line for line in scenario(**more).read_as), scenario(**more).read_as


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"images": 9, "context": 8192}, "images of a prompt take 12,321 tokens"),
        ({"image_size": "huge"}, "image_size is 'huge'"),
        ({"image_size": "0x0"}, "image_size is '0x0'"),
        ({"images": 0}, "images is 0"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, object], why: str) -> None:
    with pytest.raises(RequestError, match=why):
        scenario(**more)


@pytest.mark.parametrize(
    ("framework", "more"),
    [
        ("vLLM", {"images": 4}),
        ("vLLM", {"images": 4, "image_size": "1280x720"}),
        ("SGLang", {"images": 2}),
        ("llama.cpp", {"image_size": "1024 tokens"}),
    ],
)
def test_commands_say_them_and_are_read_back(framework: str, more: dict[str, object]) -> None:
    precision = "Q4_K_M" if framework == "llama.cpp" else "FP16"
    told = scenario(framework=framework, precision=precision, **more)
    read = asked_by(read_pasted(command_for(told)), known())
    assert not read.not_sized
    assert {key: read.settings.get(key) for key in more} == more


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--limit-mm-per-prompt image=3", {"images": 3}),
        ('--limit-mm-per-prompt \'{"image": 3, "video": 0}\'', {"images": 3}),
        ("--limit-mm-per-prompt '{\"image\": 0}'", {"text_only": True}),
        ("--limit-mm-per-prompt '{\"video\": 0}'", {}),
    ],
)
def test_limits_are_read_in_every_form(words: str, wanted: dict[str, object]) -> None:
    read = asked_by(read_pasted(f"vllm serve Qwen/Qwen2.5-VL-7B-Instruct {words}"), known())
    found = {key: read.settings[key] for key in ("images", "text_only") if key in read.settings}
    assert found == wanted


@pytest.mark.parametrize(
    ("text", "images", "size"),
    [
        ("qwen3-vl-8b on a 4090, 4 images per prompt at 1920x1080", 4, "1920x1080"),
        ("two 1080p screenshots with qwen3-vl-8b on a 4090", 2, "1080p"),
        ("qwen3-vl-8b on a 4090 with 6 photos in each request", 6, None),
    ],
)
def test_a_question_says_them(text: str, images: int, size: str | None) -> None:
    found = read_sentence(text, known()).settings
    assert (found.get("images"), found.get("image_size")) == (images, size)
