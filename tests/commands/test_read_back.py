"""The closed loop: every command that is printed is read back to the scenario that it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import pytest
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.files import data_dir
from advisor.knowledge.programs import GGUF_FILE
from advisor.reading.command_lines import read_command
from advisor.reading.pasted_request import asked_by, read_pasted
from advisor.reading.public_list import bare_key
from advisor.reading.published import unpacked_name
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import Command, command_for, commands_for
from advisor.scenario import Scenario, claimed_share, split_of
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request, request_from
from tests.commands.test_programs import known, requests

STEP = 17
PLAIN = {"auto": "f16"}
"""The cache type used when nothing is said has two names."""


def bits(scenario: Scenario) -> object:
    """16 bits are the checkpoint's own type, which some programs are not told."""
    form = scenario.precision
    return form.bits_per_weight if form.family == "unquantized" else form.name


SETTINGS: Mapping[str, Callable[[Scenario], object]] = {
    "model": lambda s: (
        bare_key(unpacked_name(s.model.name)).removeprefix("meta-").removesuffix("-bf16")
    ),
    "precision": bits,
    "framework": lambda s: s.framework.name,
    "context": lambda s: s.context_tokens,
    "batch": lambda s: s.batch,
    "gpus": lambda s: s.gpus,
    "split": split_of,
    "backend": lambda s: s.backend,
    "kv_cache": lambda s: [PLAIN.get(k.name, k.name) for k in (s.kv_cache_k, s.kv_cache_v)],
    "flash_attention": lambda s: s.flash_attention,
    "ubatch": lambda s: s.ubatch,
    "kv_unified": lambda s: s.kv_unified or s.batch == 1,
    "swa_full": lambda s: s.swa_full,
    "gpu_layers": lambda s: s.gpu_layers,
    "cpu_experts": lambda s: s.cpu_experts,
    "draft_model": lambda s: s.draft_model and s.draft_model.name,
    "mtp": lambda s: s.mtp,
    "share": claimed_share,
    "step": lambda s: s.max_num_batched_tokens if claims(s) else None,
    "eager": lambda s: bool(s.eager) and bool(runtime_of(s.framework).captures_graphs),
    "text_only": lambda s: bool(s.text_only),
}


def claims(scenario: Scenario) -> bool:
    return runtime_of(scenario.framework).claims_memory


def sample() -> Iterator[Scenario]:
    for request in islice(requests(), 0, None, STEP):
        try:
            yield resolve(request, known())
        except UserError:
            continue


def read_back(command: Command, scenario: Scenario) -> Scenario:
    """Resolve what a command says, on the card of the scenario."""
    pasted = read_pasted(command.text)
    assert not pasted.unknown, command.text
    assert not pasted.wrong, command.text
    asked = asked_by(pasted, known())
    assert not asked.not_sized, command.text
    assert scenario.gpu
    cards = asked.cards or scenario.gpus
    card = f"{cards}x {scenario.gpu.name}" if cards > 1 else scenario.gpu.name
    return resolve(request_from({**asked.settings, "gpu": card}), known())


def test_every_printed_command_is_read_back_to_its_scenario() -> None:
    programs = set()
    for scenario in sample():
        for command in commands_for(scenario):
            again = read_back(command, scenario)
            unsaid = {gap.setting for gap in command.gaps}
            programs.add(command.program)
            for name, value in SETTINGS.items():
                same = name in unsaid or value(again) == value(scenario)
                assert same, (name, value(scenario), value(again), command.text)
    assert programs == {c.name for f in known().frameworks.values() for c in f.commands}


def _seen() -> list[tuple[str, str, str]]:
    lines = (data_dir("knowledge") / GGUF_FILE).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    seen = [row for row in rows if row[0] not in {"*", "mtp", "also", "mmproj"}]
    return [(model, at, name) for model, at, formats in seen for name in formats.split()]


@pytest.mark.parametrize(("model", "repository", "name"), _seen())
def test_gguf_files_that_were_seen_are_named_and_read_back(
    model: str, repository: str, name: str
) -> None:
    """llama.cpp and Ollama are told what to download, Ollama of no parts; all is read back."""
    name, only, tag = name.partition("=")
    asked = Request(gpu="8x H100", model=model, precision=name, context=4_096)
    asked = replace(asked, framework="llama.cpp")
    scenario = resolve(asked, known())
    file = repository if only and not tag else f"{repository}:{tag or name}"
    assert f"-hf {file} " in command_for(scenario)
    ollama = resolve(replace(asked, framework="Ollama"), known())
    (told, *_) = commands_for(ollama)
    assert (" 'FROM ./" in told.text) is (told.unpublished == "parts")
    for text in (command_for(scenario), command_for(ollama)):
        read = asked_by(read_command(text), known()).settings
        back = resolve(request_from({"gpu": "8x H100", **read}), known())
        assert back.precision.name == name
        assert back.model.parameters == scenario.model.parameters


def _heads() -> list[tuple[str, str]]:
    lines = (data_dir("knowledge") / GGUF_FILE).read_text("utf-8").splitlines()
    return [(row[1], row[2]) for row in (line.split("\t") for line in lines) if row[0] == "mtp"]


@pytest.mark.parametrize(("model", "repository"), _heads())
def test_files_that_hold_a_head_are_named_and_read_back(model: str, repository: str) -> None:
    asked = Request(gpu="8x H100", model=model, precision="Q4_K_M", context=4_096, mtp=2)
    scenario = resolve(asked, known())
    told = command_for(scenario)
    assert f"-hf {repository}:Q4_K_M " in told
    read = asked_by(read_command(told), known()).settings
    back = resolve(request_from({"gpu": "8x H100", **read}), known())
    assert (back.precision.name, back.mtp) == ("Q4_K_M", 2)
    assert back.model.parameters == scenario.model.parameters


def test_a_file_that_was_not_seen_is_named_after_the_model() -> None:
    for framework, start in (("llama.cpp", "-m "), ("Ollama", "FROM ./")):
        asked = Request(gpu="H100", model="phi-2", precision="Q6_K", framework=framework)
        assert f"{start}phi-2-Q6_K.gguf" in command_for(resolve(asked, known()))


def test_a_repository_of_the_list_is_named_in_the_formats_its_publisher_makes() -> None:
    """A file that its publisher cuts into parts is not: llama.cpp does not join those."""
    asked = Request(gpu="H100", model="phi-4", precision="Q6_K")
    assert "-hf unsloth/phi-4-GGUF:Q6_K " in command_for(resolve(asked, known()))
    sister = replace(asked, precision="IQ2_XS")
    assert "-hf mradermacher/phi-4-i1-GGUF:i1-IQ2_XS " in command_for(resolve(sister, known()))
    rare = replace(asked, precision="Q5_1")
    assert "-m phi-4-Q5_1.gguf " in command_for(resolve(rare, known()))
    large = replace(asked, gpu="8x H100", model="llama-3.1-405b-instruct")
    assert "mradermacher" not in command_for(resolve(large, known()))


@pytest.mark.parametrize(
    ("model", "precision", "named"),
    [
        ("llama-4-scout-17b-16e", "Q4_K_M", "unsloth/Llama-4-Scout-17B-16E-Instruct-GGUF:Q4_K_M"),
        ("qwen3.6-35b-a3b", "IQ2_M", "unsloth/Qwen3.6-35B-A3B-GGUF:UD-IQ2_M"),
        ("gemma-3-27b-it", "IQ3_M", "bartowski/google_gemma-3-27b-it-GGUF:IQ3_M"),
        ("qwen3-8b", "FP16", "unsloth/Qwen3-8B-GGUF:BF16"),
    ],
)  # fmt: skip
def test_files_are_named_of_copies_under_other_names_and_in_16_bits(
    model: str, precision: str, named: str
) -> None:
    asked = Request(gpu="H100", model=model, precision=precision, framework="llama.cpp")
    assert f"-hf {named} " in command_for(resolve(asked, known()))


def test_the_projector_of_a_download_comes_with_it() -> None:
    asked = Request(gpu="H100", model="gemma-3-27b-it", precision="Q8_0")
    text = command_for(resolve(asked, known()))
    assert "-hf unsloth/gemma-3-27b-it-GGUF:Q8_0" in text
    assert "--mmproj" not in text
