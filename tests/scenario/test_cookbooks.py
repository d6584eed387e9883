"""What the makers of a server show how to serve is not said to be refused by it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.scenario.asked_model import model_named
from advisor.scenario.support import supports_model, why_not

_ROWS = Path(__file__).parents[1] / "data" / "cookbook_models.tsv"


def test_models_of_the_cookbooks_are_served() -> None:
    knowledge = load_knowledge()
    with _ROWS.open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file, delimiter="\t")]
    refused = [
        f"{row['framework']} {row['model']}"
        for row in rows
        if not supports_model(
            knowledge.frameworks[row["framework"]], model_named(row["model"], knowledge).model
        )
    ]
    assert (refused, len(rows) > 80) == ([], True)


@pytest.mark.parametrize("framework", ["vLLM", "SGLang"])
def test_what_has_no_class_in_a_server_may_run_by_that_of_transformers(framework: str) -> None:
    knowledge = load_knowledge()
    server, model = (
        knowledge.frameworks[framework],
        model_named("EleutherAI/gpt-neo-125m", knowledge),
    )
    said = why_not(
        server, knowledge.formats["FP16"], knowledge.gpus["GeForce RTX 4090"], model.model
    )
    assert "no code of its own for the architecture 'gpt_neo'" in said
    assert "transformers may stand in" in said
