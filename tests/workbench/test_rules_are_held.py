"""Every mistake that a mutant can put into the project's own rules is noticed by a test.

A rule that arrives without the cases that hold it fails here, within seconds and without a search.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.errors import RequestError
from advisor.workbench.mutants import line_of, mutants_of, read_known, told_apart, write_known
from advisor.workbench.mutation_run import Search, mutated_rules
from advisor.workbench.sides import Folders

KNOWN = Path(__file__).parent.parent / "data" / "equivalent-mutants.txt"
LEAST_OF_ALL = 0.85
"""So that the file of equivalents is no way out."""


def test_no_mistake_in_the_rules_goes_unnoticed() -> None:
    result = mutated_rules(Folders(), None, (), Search(1, limit=0, known=KNOWN))
    new = "\n".join(f"  {line_of(mutant)}" for mutant in result.unresolved)
    assert not new, (
        f"No case or scenario notices these mistakes:\n{new}\n"
        "'advisor rules mutate --rule ID' gives a case to paste for each, or shows that nothing in "
        f"the catalogue tells it apart; then add --known {KNOWN.name} --accept."
    )
    assert result.share_of_all >= LEAST_OF_ALL


def test_the_file_of_equivalents_names_mutants_that_there_are(advisor: Advisor) -> None:
    rules = advisor.ruleset.by_id
    known = read_known(KNOWN)
    unknown = [line for line in known if line.partition(": ")[0] not in rules]
    assert not unknown, "rules that are gone: run 'advisor rules mutate --known FILE --accept'"


def test_a_line_stands_for_one_mutant(advisor: Advisor) -> None:
    one, *rest = mutants_of(advisor.ruleset.rule("cache-is-large"), advisor.vocabulary)
    new, old = told_apart([one, one, *rest], {line_of(one): 1})
    assert old == [one]
    assert new == [one, *rest]


def test_equivalents_are_written_and_read_back(advisor: Advisor, tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    large = list(mutants_of(advisor.ruleset.rule("cache-is-large"), advisor.vocabulary))
    tight = list(mutants_of(advisor.ruleset.rule("fit-is-tight"), advisor.vocabulary))
    write_known(file, [*large, *tight], {"cache-is-large", "fit-is-tight"})
    assert read_known(file) == Counter(map(line_of, [*large, *tight]))
    write_known(file, large[:1], {"cache-is-large"})
    assert read_known(file) == Counter(map(line_of, [large[0], *tight]))


def test_a_known_equivalent_counts_as_such_and_nothing_is_looked_for(tmp_path: Path) -> None:
    search = Search(1, limit=0)
    none = tmp_path / "no-scenarios"
    before = mutated_rules(Folders(), none, ["verdict-fits"], search)
    assert before.unresolved
    assert before.sample == 0
    file = tmp_path / "known.txt"
    write_known(file, before.unresolved[:1], {"verdict-fits"})
    after = mutated_rules(Folders(), none, ["verdict-fits"], Search(1, limit=0, known=file))
    assert after.same == 1
    assert len(after.unresolved) == len(before.unresolved) - 1
    assert after.share > before.share
    assert after.share_of_all == before.share_of_all


def test_accepting_writes_what_the_search_found(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    search = Search(60, known=file, accept=True, workers=1)
    result = mutated_rules(Folders(), tmp_path / "none", ["quality-risk"], search)
    assert result.equivalent
    assert read_known(file) == Counter(map(line_of, result.equivalent))


def test_a_missing_file_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read") as caught:
        read_known(tmp_path / "none.txt")
    assert "--accept" in str(caught.value.hint)
