"""Formats that a runtime runs in fewer places than it runs itself: EXL2 in TGI."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.preparation import prepare
from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.remedies.option import Option
from advisor.scenario import support
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.remedies.promises import changes_that_differ


def exl2(gpu: str, model: str) -> Request:
    return Request(gpu=gpu, model=model, precision="EXL2 4.0bpw", framework="TGI")


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return load_knowledge()


@pytest.mark.parametrize(
    ("gpu", "model", "message"),
    [
        ("RTX 4090", "DeepSeek-V3", "TGI does not support the architecture 'deepseek_v3' in EXL2"),
        ("MI300X", "Llama-3.1-8B", "TGI does not run EXL2 4.0bpw on AMD cards"),
    ],
)
def test_tgi_refuses_exl2_elsewhere(known: Knowledge, gpu: str, model: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        resolve(exl2(gpu, model), known)


def test_tgi_runs_other_formats_where_it_did(known: Knowledge) -> None:
    for gpu, gpus, model in (("RTX 4090", 1, "Llama-3.1-8B"), ("MI300X", 8, "DeepSeek-V3")):
        precision = "EXL2 4.0bpw" if gpus == 1 else "BF16"
        request = Request(gpu=gpu, gpus=gpus, model=model, precision=precision, framework="TGI")
        assert resolve(request, known).precision.name == precision


def test_exl2_in_tgi_is_no_what_if_where_it_cannot_run() -> None:
    advice = Advisor.load().advise(
        Request(
            gpu="MI300X", gpus=2, model="DeepSeek-V3", precision="INT4", batch=8, context=16_384
        )
    )
    assert advice.options
    assert not [o.key for o in advice.options if o.scenario.precision.family == "exl2"]


def test_no_second_card_is_proposed_for_exl2_in_tgi() -> None:
    advice = Advisor.load().advise(exl2("RTX 4090", "Llama-3.1-70B"))
    several = [o.scenario for o in advice.options if o.scenario.gpus > 1]
    assert advice.break_even.fewest_gpus is None
    assert not [s for s in several if (s.framework.name, s.precision.family) == ("TGI", "exl2")]


def test_on_two_cards_exl2_in_tgi_is_promised_on_one_or_left_out(known: Knowledge) -> None:
    """From one card it is a what-if; from two it would have to say ``gpus: 1``."""

    def offered(request: Request) -> list[Option]:
        found = prepare(request, known).options
        wanted = ("TGI", "exl2")
        return [
            o for o in found if (o.scenario.framework.name, o.scenario.precision.family) == wanted
        ]

    for gpu, model in (("RTX 4090", "Llama-3.1-8B"), ("RTX 2060 SUPER", "Mistral-7B-v0.3")):
        one = Request(gpu=gpu, model=model, framework="TGI")
        two = replace(one, gpus=2)
        assert offered(one)
        assert {option.scenario.gpus for option in offered(two)} <= {1}
        assert changes_that_differ(one, known) == changes_that_differ(two, known) == []


def test_the_makers_of_a_limit_are_said(known: Knowledge) -> None:
    tgi, exl2 = known.frameworks["TGI"], known.formats["EXL2 4.0bpw"]
    assert support.vendors_for(tgi, exl2) == ["NVIDIA"]
    assert support.vendors_for(tgi, known.formats["BF16"]) == ["NVIDIA", "AMD", "Intel"]


def test_an_unknown_architecture_is_said_to_be_unknown_not_refused() -> None:
    asked = Request(gpu="8x H100 SXM5 80 GB", model="LongCat-Flash-Chat", framework="vLLM")
    with pytest.raises(UserError, match="whether vLLM runs it is not known"):
        resolve(asked, load_knowledge())


def test_what_one_model_of_a_kind_is_refused_another_is_not() -> None:
    """Gemma 4 E4B has tables by layer, which ExLlamaV3 does not read; the 31B has none."""
    asked = Request(gpu="RTX 4090", model="gemma-4-e4b-it", precision="EXL3 4.0bpw")
    knowledge = load_knowledge()
    with pytest.raises(UserError):
        resolve(asked, knowledge)
    assert resolve(replace(asked, model="gemma-4-31b-it"), knowledge).framework.name == "ExLlamaV3"
