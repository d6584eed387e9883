"""A configuration somebody measured shows that figure; its neighbours show the model's."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.errors import KnowledgeError
from advisor.estimator.speed import estimate_speed
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import KvType
from advisor.models import model_from_record
from advisor.scenario import Scenario
from advisor.scenario.figures import Figure
from tests.estimate.test_speed import framework, gguf, memory, scenario

BUILT_IN = load_knowledge()
LLAMA_3_8B = model_from_record(BUILT_IN.models["Meta-Llama-3-8B"], BUILT_IN)
KNOWN = scenario(BUILT_IN.gpus["GeForce RTX 4090"], LLAMA_3_8B)


def decode(what: Scenario) -> Figure:
    found = estimate_speed(what, memory(), BUILT_IN)
    assert found is not None
    return found.decode_tok_s


def test_a_measured_configuration_shows_the_measurement_and_its_source() -> None:
    figure = decode(KNOWN)
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: 130.58 at 512 tokens, 127.59 at 1,024
    assert figure.estimate == pytest.approx(129.1, rel=0.01)
    assert figure.evidence == "measured"
    assert figure.source == "XiongjieDai/GPU-Benchmarks-on-LLM-Inference, 2024-05"
    assert figure.low < figure.estimate < figure.high < 1.3 * figure.estimate


def test_the_models_own_figure_stands_beside_it() -> None:
    own = decode(replace(KNOWN, model=replace(LLAMA_3_8B, name="other"))).estimate
    assert decode(KNOWN).modelled == pytest.approx(own)


@pytest.mark.parametrize(
    "changes",
    [
        {"gpu": BUILT_IN.gpus["GeForce RTX 4090 D"]},
        {"precision": gguf("Q5_K_M")},
        {"framework": framework("Ollama")},
        {"backend": "Vulkan"},
        {"gpus": 3},
        {"batch": 2},
        {"depth_tokens": 900},
        {"kv_cache_k": KvType("q8_0", 8.5)},
        {"gpu_layers": 20, "ram_bandwidth_bytes_s": 8e10},
        {"model": replace(LLAMA_3_8B, origin="config")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_neighbours_are_not_measured(changes: Mapping[str, object]) -> None:
    figure = decode(replace(KNOWN, **changes))
    assert figure.evidence != "measured"
    assert figure.source == ""
    assert figure.modelled is None


def test_a_short_conversation_is_still_measured() -> None:
    assert decode(replace(KNOWN, depth_tokens=512)).evidence == "measured"


def test_another_depth_shows_what_was_measured_there() -> None:
    deep = decode(replace(KNOWN, depth_tokens=4000))
    assert deep.evidence == "measured"
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: 110.66 over 8,192 generated tokens
    assert deep.estimate == pytest.approx(110.7, rel=0.01)


def test_several_streams_show_the_sum_and_each_ones_share() -> None:
    card, what = BUILT_IN.gpus["DGX Spark (GB10)"], BUILT_IN.models["gpt-oss-20b"]
    found = estimate_speed(
        scenario(
            card, model_from_record(what, BUILT_IN), precision=BUILT_IN.formats["MXFP4_MOE"],
            batch=8, depth_tokens=528,
        ),
        memory(), BUILT_IN,
    )  # fmt: skip
    assert found is not None
    assert found.aggregate_tok_s is not None
    # ggml-org/llama.cpp, dgx-spark: 254.09
    assert found.aggregate_tok_s.estimate == pytest.approx(254.1)
    assert found.decode_tok_s.estimate == pytest.approx(254.1 / 8)
    assert found.decode_tok_s.evidence == found.aggregate_tok_s.evidence == "measured"


def lines() -> list[dict[str, str]]:
    path = Path(__file__).parents[2] / "knowledge" / "measured.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_line_names_what_the_knowledge_has() -> None:
    for line in lines():
        assert line["gpu"] in BUILT_IN.gpus
        assert line["model"] in BUILT_IN.models
        assert line["precision"] in BUILT_IN.formats
        assert line["framework"] in BUILT_IN.frameworks
        assert line["source"]


def test_every_single_stream_measurement_is_found_again() -> None:
    """And is near the model: wrong cards, units or models would be off by far more."""
    plain = [line for line in lines() if line["framework"] == "llama.cpp" and line["gpus"] == "1"]
    assert len(plain) > 200
    off = 0
    for line in plain:
        what = replace(
            scenario(
                BUILT_IN.gpus[line["gpu"]],
                model_from_record(BUILT_IN.models[line["model"]], BUILT_IN),
                precision=BUILT_IN.formats[line["precision"]], backend=line["backend"],
            ),
            batch=int(line["batch"]), depth_tokens=int(line["depth_tokens"]), context_tokens=2**18,
        )  # fmt: skip
        figure = decode(what)
        assert figure.evidence == "measured", line
        assert figure.modelled is not None
        off += not 0.55 < figure.modelled / figure.estimate < 1.8
    assert off < 0.03 * len(plain)


def test_a_wrong_line_of_the_published_table_is_named(tmp_path: Path) -> None:
    header = "gpu,model,precision,framework,backend,gpus,batch,cache,depth_tokens,tok_s,source,date"
    (tmp_path / "measured.csv").write_text(
        f"{header}\nGeForce RTX 4090,Meta-Llama-3-8B,Q4_K_M,llama.cpp,CUDA,1,1,f16,0,fast,me,\n",
        encoding="utf-8",
    )
    with pytest.raises(KnowledgeError, match=r"measured\.csv:2.*tok_s is 'fast'"):
        load_knowledge(tmp_path)


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("measurements-user.csv", "advisor measure add measurements-user.csv"),
        ("calibration-user.yaml", "Delete it."),
    ],
)
def test_files_of_the_older_way_are_named_with_what_to_do(
    tmp_path: Path, name: str, do: str
) -> None:
    (tmp_path / name).write_text("", encoding="utf-8")
    with pytest.raises(KnowledgeError, match="not read any more") as found:
        load_knowledge(tmp_path)
    assert name in str(found.value)
    assert do in str(found.value)


def test_drafts_leave_the_measured_figure_as_it_is() -> None:
    drafted = replace(
        KNOWN, draft_model=model_from_record(BUILT_IN.models["Llama-3.2-1B"], BUILT_IN)
    )
    plain, found = (estimate_speed(what, memory(), BUILT_IN) for what in (KNOWN, drafted))
    assert plain is not None
    assert found is not None
    assert found.decode_tok_s == plain.decode_tok_s
    assert found.decode_tok_s.evidence == "measured"
