"""Both engines give the same advice, byte for byte, whatever a rule asks."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.errors import UserError
from advisor.report import render_json
from advisor.report.assembly import document
from advisor.rules.engine.durable import available
from advisor.rules.language.static_checks import MAX_TESTS_PER_GROUP
from advisor.scenario.settings import Request
from tests.test_options import drawn


@lru_cache
def advisor(engine: str) -> Advisor:
    return Advisor.load(engine=engine)


def advice_json(engine: str, request: Request) -> str:
    try:
        doc = document(advisor(engine).advise(request))
    except UserError as error:
        return str(error)
    doc.provenance = replace(doc.provenance, engine="either")
    return render_json(doc)


@pytest.mark.skipif(not available(), reason="durable-rules is not installed")
@pytest.mark.parametrize("seed", [101, 102])
def test_durable_and_reference_give_the_same_bytes(seed: int) -> None:
    for request in drawn(seed):
        assert advice_json("durable", request) == advice_json("reference", request)


NONE_OF = """\
- rule: not-a-known-card
  why: Made up.
  source: made up
  when:
    gpu.vram: above 0 GiB
    not:
      gpu.name: one of {0}
  note: This card is not in the list.
  cases:
    - {{name: other, given: {{gpu: RTX 4090, model: phi-3-medium}}, expect: fires}}
    - {{name: listed, given: {{gpu: {1}, model: phi-3-medium}}, expect: silent}}
"""


@pytest.mark.parametrize("engine", ["durable", "reference"])
def test_none_of_more_names_than_a_rule_may_have_tests(tmp_path: Path, engine: str) -> None:
    if engine == "durable" and not available():
        pytest.skip("durable-rules is not installed")
    known = [name for name in advisor("reference").knowledge.gpus if name.startswith("GeForce RTX")]
    listed = [name for name in known if name != "GeForce RTX 4090"][: MAX_TESTS_PER_GROUP + 5]
    assert len(listed) == MAX_TESTS_PER_GROUP + 5
    text = NONE_OF.format(", ".join(listed), listed[-1])
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
    own = Advisor.load(rules=tmp_path, engine=engine)
    for gpu, said in (("RTX 4090", True), *((name, False) for name in listed[::6])):
        advice = own.advise(Request(gpu=gpu, model="phi-3-medium"))
        assert ("not-a-known-card" in {note.rule for note in advice.notes}) is said, gpu
