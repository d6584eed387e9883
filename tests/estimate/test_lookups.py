"""Tables looked up by token: held where the runtime keeps them, neither read nor multiplied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.speed_prefill import work_of
from advisor.estimator.speed_step import CacheReads, reads_of
from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.models import model_from_record
from advisor.models.stored_tensors import place_of
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

if TYPE_CHECKING:
    from advisor.models.stored_tensors import Model
    from advisor.scenario import Scenario

KNOWLEDGE = load_knowledge()
WITH_TABLES = [
    model for record in KNOWLEDGE.models.values()
    if record.config.get("model_type") in {"gemma3n", "gemma4"}
    and (model := model_from_record(record, KNOWLEDGE)).shape.lookup
]  # fmt: skip
NAMES = [model.name for model in WITH_TABLES]
FORMATS = {
    "llama.cpp": ("Q4_K_M", "Q8_0", "F16"),
    "vLLM": ("FP16", "AWQ"),
    "MLX-LM": ("MLX 4-bit",),
}


def scenarios() -> list[tuple[str, str, str]]:
    return [(n, f, p) for n in NAMES for f, formats in FORMATS.items() for p in formats]


def scenario(model: str, framework: str, precision: str) -> Scenario:
    card = "Apple M3 Max (40-core GPU)" if framework == "MLX-LM" else "RTX 4090"
    given = Request(gpu=card, model=model, framework=framework, precision=precision, context=2048)
    return resolve(given, KNOWLEDGE)


def without_table(model: Model) -> Model:
    """The same model with its table taken away: what it computes with is unchanged."""
    shape, counts = model.shape, model.shape.counts
    assert counts
    rest = replace(counts, total=counts.total - shape.lookup, active=counts.active - shape.lookup)
    return replace(
        model,
        shape=replace(shape, lookup=0, counts=rest),
        parameters=model.parameters - shape.lookup,
        active_parameters=model.active_parameters - shape.lookup,
    )


def test_the_models_with_tables_are_those_with_inputs_for_every_layer() -> None:
    assert len(WITH_TABLES) >= 4
    for model in WITH_TABLES:
        assert model.shape.lookup == 262_144 * 256 * model.shape.layers


@pytest.mark.parametrize(("model", "framework", "precision"), scenarios())
def test_a_table_is_held_but_neither_read_nor_multiplied(
    model: str, framework: str, precision: str
) -> None:
    whole = scenario(model, framework, precision)
    bare = replace(whole, model=without_table(whole.model))
    found = [
        weights_of(s.model, s.precision, s.framework, KNOWLEDGE.ggml_types) for s in (whole, bare)
    ]
    table = found[0].profile.lookup_bytes
    assert table > 0.4 * whole.model.shape.lookup
    assert found[0].profile.total_bytes - found[1].profile.total_bytes == table
    assert found[0].profile.read_bytes == found[1].profile.read_bytes
    read = [
        reads_of(s, estimate_memory(s, KNOWLEDGE), w, CacheReads(0.0)).step_bytes(1)
        for s, w in zip((whole, bare), found, strict=True)
    ]
    assert read[0] == read[1]
    assert work_of(whole.model) == work_of(bare.model)


@pytest.mark.parametrize("model", NAMES)
def test_without_exact_counts_a_table_is_no_part_of_the_layers(model: str) -> None:
    whole = scenario(model, "llama.cpp", "Q4_K_M")
    counted = whole.model
    average = replace(counted, shape=replace(counted.shape, counts=None))
    a, b = (
        weights_of(m, whole.precision, whole.framework, KNOWLEDGE.ggml_types).profile
        for m in (counted, average)
    )
    assert a.lookup_bytes == b.lookup_bytes
    assert b.read_bytes == pytest.approx(a.read_bytes, rel=0.05)
    assert work_of(average).dense == pytest.approx(work_of(counted).dense, rel=0.03)


@pytest.mark.parametrize("model", NAMES)
@pytest.mark.parametrize(
    ("framework", "precision", "in_ram"),
    [("llama.cpp", "Q4_K_M", True), ("Ollama", "Q4_K_M", True), ("vLLM", "FP16", False)],
)
def test_the_table_lies_where_the_runtime_keeps_it(
    model: str, framework: str, precision: str, *, in_ram: bool
) -> None:
    whole = scenario(model, framework, precision)
    bare = replace(whole, model=without_table(whole.model))
    memory, rest = (estimate_memory(s, KNOWLEDGE) for s in (whole, bare))
    table = weights_of(whole.model, whole.precision, whole.framework, KNOWLEDGE.ggml_types).lookup
    assert memory.host_weights_bytes - rest.host_weights_bytes == (table if in_ram else 0)
    assert memory.weights_bytes - rest.weights_bytes == (0 if in_ram else table)


@pytest.mark.parametrize("cards", [("RTX 4090", "DGX Spark"), ("DGX Spark", "RTX 4090")])
def test_where_the_table_lies_does_not_depend_on_what_was_asked_before(
    cards: tuple[str, str],
) -> None:
    """Both are CUDA; the Spark has one memory, in which the table counts with the card."""
    whole = scenario(NAMES[0], "llama.cpp", "Q5_K_M")
    table = weights_of(whole.model, whole.precision, whole.framework, KNOWLEDGE.ggml_types).lookup
    at = [
        resolve(Request(gpu=name, model=NAMES[0], precision="Q5_K_M"), KNOWLEDGE) for name in cards
    ]
    memory = dict(zip(cards, (estimate_memory(s, KNOWLEDGE) for s in at), strict=True))
    one, two = memory["DGX Spark"], memory["RTX 4090"]
    assert one.weights_bytes - two.weights_bytes == table
    assert two.host_weights_bytes - one.host_weights_bytes == table


def test_a_model_on_the_processor_keeps_its_table_there() -> None:
    given = Request(gpu="RTX 4090", model=NAMES[0], precision="Q4_K_M", gpu_layers=0, context=2048)
    whole = resolve(given, KNOWLEDGE)
    bare = replace(whole, model=without_table(whole.model))
    a, b = (estimate_memory(s, KNOWLEDGE).host_weights_bytes for s in (whole, bare))
    assert a > b


@pytest.mark.parametrize(
    "name",
    ["per_layer_token_embd.weight", "model.language_model.embed_tokens_per_layer.weight"],
)
def test_files_name_the_table(name: str) -> None:
    assert place_of(name, 30).part == "lookup"
    assert place_of("token_embd.weight", 30).part == "embedding"


def test_both_sizes_of_a_family_leave_one_pair_of_towers() -> None:
    """Published totals to 1,000 parameters; Gemma 4 projects 768 and 1,536 to the hidden width."""
    left = {
        m.name: (KNOWLEDGE.models[m.name].parameters or 0) - m.shape.counts.total
        for m in WITH_TABLES
        if m.shape.counts
    }
    assert left["gemma-3n-E2B-it"] == pytest.approx(left["gemma-3n-E4B-it"], abs=1000)
    wide, narrow = (left[f"gemma-4-{n}-it"] for n in ("E4B", "E2B"))
    assert wide - (768 + 1536) * 2560 == pytest.approx(narrow - (768 + 1536) * 1536, abs=1000)
