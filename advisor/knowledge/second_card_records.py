"""knowledge/second_cards.yaml: the cards that are tried beside another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from advisor.errors import UserError
from advisor.knowledge.fields import records
from advisor.suggest import did_you_mean

_FILE = "second_cards.yaml"


def read_second_cards(
    files: Mapping[str, bytes],
    ids: Collection[str],
    gpus: Collection[str],
    problems: list[UserError],
) -> list[str]:
    """Read the names of the cards, in file order.

    Args:
        files: All knowledge files by relative path.
        ids: The declared source ids.
        gpus: The names of the cards in gpus/.
        problems: Takes what is wrong.
    """
    found = []
    for record in records(files.get(_FILE, b""), _FILE, "second_card", problems):
        record.text("why", required=True)
        record.sources(ids)
        record.finish()
        if record.name not in gpus:
            hint = did_you_mean(record.name, gpus) or "Write the name as in gpus/."
            record.problem("no such card in gpus/", hint=hint)
        found.append(record.name)
    return found
