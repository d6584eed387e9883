"""Models in order of merit for a use: what comes first, in which format, with which context."""

from __future__ import annotations

from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.bulk.reverse import Ranking
from advisor.bulk.reverse.answers import Found, Row, Settings
from advisor.bulk.reverse.documents import reverse_doc
from advisor.bulk.reverse.models import ModelFilter, models_for
from advisor.bulk.reverse.view import ranking_words
from advisor.errors import Problems, UserError
from advisor.knowledge.merit import merit_of, merits
from advisor.scenario.settings import Request
from tests.reverse.asking import knowledge

CARDS = ("RTX 4070", "Strix Halo 128GB")


@lru_cache(maxsize=32)
def found_for(card: str, use: str | None = None, **settings: object) -> Found:
    asked = Settings(use=use, **settings)  # type: ignore[arg-type]  # fields of Settings
    return models_for(card, asked, ModelFilter(), knowledge(), limit=40)[1]


def names(found: Found) -> list[str]:
    return [row.answer.scenario.model.name for row in found.rows]


def standing(row: Row, found: Found) -> tuple[bool, bool, float]:
    """Whether it is too slow, too old, and its merit with the sign turned."""
    model, policy = row.answer.scenario.model, knowledge().policy
    least = Ranking(knowledge(), found.wish).least_speed(model)
    newest = merits(knowledge()).as_of
    oldest = f"{int(newest[:4]) - int(policy['merit_oldest_years'])}{newest[4:]}"
    old = (model.released or newest) < oldest
    return (row.answer.decode_tok_s or 0) < least, old, -row.merit.points if row.merit else 1.0


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("use", ["chat", "code"])
def test_fast_new_and_good_models_come_first(card: str, use: str) -> None:
    """No model of over two years is among the first while a newer one fits."""
    found = found_for(card, use)
    order = [standing(row, found) for row in found.rows]
    assert order == sorted(order)
    assert not any(old for _, old, _ in order[:3])


@pytest.mark.parametrize("use", ["chat", "code"])
def test_no_model_is_named_twice(use: str) -> None:
    listed = names(models_for("RTX 4070", Settings(use=use), ModelFilter(), knowledge())[1])
    assert len(listed) == len(set(listed))


def test_a_server_runs_what_was_published() -> None:
    """On datacenter cards no model is put into a program that places layers where a server runs."""
    taken = {
        row.answer.scenario.model.name: row.answer.scenario for row in found_for("8x H200").rows
    }
    assert taken["DeepSeek-V4-Flash"].precision.name == "FP4+FP8"
    assert taken["Kimi-K2.6"].precision.name == "INT4 (experts)"
    assert not taken["Qwen3.8-27B"].framework.places_layers


@pytest.mark.parametrize("card", CARDS)
def test_a_format_is_lossy_only_where_memory_asks_for_it(card: str) -> None:
    """A smaller format is taken for speed as long as it loses little, not beyond."""
    little = knowledge().policy["little_loss_percent"]
    for row in found_for(card).rows[:12]:
        loss = row.answer.loss_percent or 0.0
        if loss > little:
            named = Settings(precisions=("Q4_K_M",), use="chat")
            model = row.answer.scenario.model
            family = ModelFilter(family=model.family if model.origin == "knowledge" else None)
            again = models_for(card, named, family, knowledge())[1]
            fits = [r for r in again.rows if r.answer.scenario.model == row.answer.scenario.model]
            slow = [standing(r, again)[0] for r in fits]
            assert not fits or all(slow) or fits[0].margin == "thin"


def test_what_a_format_costs_is_taken_off() -> None:
    share = knowledge().policy["merit_loss_share"] / 100
    for row in found_for("RTX 4070").rows:
        if row.merit:
            left = 1 - (row.answer.loss_percent or 0.0) / 100 * share
            assert row.merit.points == pytest.approx(row.merit.merit.counted * left)


@pytest.mark.parametrize(
    ("use", "tokens"),
    [("chat", 8192), ("code", 32_768), ("agents", 65_536), ("long-context", 131_072)],
)
def test_a_use_sets_the_context(use: str, tokens: int) -> None:
    for row in found_for("RTX 4090", use).rows:
        trained = row.answer.scenario.model.trained_context_tokens or tokens
        assert row.answer.scenario.context_tokens == min(tokens, trained)
        assert use == "chat" or trained >= tokens


def test_a_stated_context_goes_before_that_of_the_use() -> None:
    found = found_for("RTX 4090", "code", request=Request(context=4096))
    assert {row.answer.scenario.context_tokens for row in found.rows} == {4096}


def test_repositories_of_the_public_list_that_boards_name_are_among_the_models() -> None:
    """The newest models come in without a record; each is asked for under its repository."""
    listed = [row for row in found_for("RTX 4090", "code").rows if "/" in (row.request.model or "")]
    assert listed
    for row in listed:
        model = row.answer.scenario.model
        assert model.hf_id == row.request.model
        assert model.hf_id not in {r.hf_id for r in knowledge().models.values()}
        assert merit_of(knowledge(), model.name, model.hf_id, "code")


@pytest.mark.parametrize("use", ["chat", "code", "agents", "long-context", "vision", "embedding"])
def test_every_use_has_its_own_order(use: str) -> None:
    found = found_for("RTX 4090", use)
    kinds = {row.answer.scenario.model.modality for row in found.rows}
    assert found.rows
    if use in {"embedding", "vision"}:
        assert kinds == {use}
    else:
        assert kinds <= {"text", "vision"}


def test_the_use_follows_from_the_kind_where_it_is_not_stated() -> None:
    for modality, use in (("embedding", "embedding"), ("vision", "vision"), ("text", "chat")):
        wanted = ModelFilter(modality=modality)
        _, found = models_for("RTX 4090", Settings(), wanted, knowledge(), limit=1)
        assert found.wish.use == use


def test_a_document_says_what_a_rank_rests_on() -> None:
    """Every merit has the figures of boards with their days, or names the relative."""
    found = found_for("RTX 4090", "code")
    doc = reverse_doc("models-for", "RTX 4090", found, knowledge())
    assert doc.asked.use == "code"
    for row in doc.rows:
        if row.merit:
            assert row.merit.figures
            assert all(len(figure.seen) == 10 for figure in row.merit.figures)


def test_what_is_not_measured_is_said() -> None:
    found = found_for("RTX 4070")
    unsure = [row for row in found.rows if row.merit is None or row.merit.merit.unsure]
    assert bool(unsure) == ("~" in ranking_words(found, knowledge()))
    sure = replace(found, rows=[row for row in found.rows if row not in unsure])
    assert "~" not in ranking_words(sure, knowledge())


def test_licences_are_kept_to() -> None:
    wanted = ModelFilter(licences=("MIT", "apache-2.0"))
    _, found = models_for("RTX 4090", Settings(), wanted, knowledge(), limit=10)
    assert {row.answer.scenario.model.licence for row in found.rows} <= {"mit", "apache-2.0"}
    assert found.left_out["licence_unknown"]


def test_an_unknown_use_or_licence_is_named_with_the_nearest() -> None:
    wanted = ModelFilter(licences=("apache",))
    with pytest.raises(Problems, match="'code'") as refused:
        models_for("RTX 4090", Settings(use="coding"), wanted, knowledge())
    assert "unknown licence 'apache'" in str(refused.value)


def test_an_unknown_use_alone_is_one_message() -> None:
    with pytest.raises(UserError, match="unknown use 'poetry'"):
        models_for("RTX 4090", Settings(use="poetry"), ModelFilter(), knowledge())
