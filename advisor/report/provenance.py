"""What of a report comes from the user's own files, as data and in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.files import data_dir
from advisor.knowledge.provenance import UserEntry

if TYPE_CHECKING:
    from advisor.advice.document import Advice, Provenance
    from advisor.report.contract import Document
    from advisor.report.contract_provenance import SwitchedOffDoc, YoursDoc

_REPORT = "report"
_WORDS = {"gpu": "card", "format": "weight format", "kv_type": "KV-cache type"}


def yours_doc(entry: UserEntry | None) -> YoursDoc | None:
    """Put one entry as the result document has it."""
    if entry is None:
        return None
    return {
        "what": entry.what,
        "name": entry.name,
        "at": entry.at,
        "replaces": entry.replaces or None,
        "replaces_at": entry.replaces_at or None,
        "based_on": entry.based_on or None,
        "own_fields": list(entry.own_fields),
    }


def user_rule_doc(made: Provenance, rule: str) -> YoursDoc | None:
    """Say of a rule that it is the user's; None for a built-in one."""
    for entry in made.yours:
        if entry.what == "rule" and entry.name == rule:
            return yours_doc(entry)
    return None


def user_entry_docs(advice: Advice, templates: Path | None) -> list[YoursDoc]:
    """List what of the user's own files a report rests on, templates included."""
    entries = [*advice.provenance.yours, *(_templates(advice, templates) if templates else ())]
    return [doc for entry in entries if (doc := yours_doc(entry))]


def _templates(advice: Advice, folder: Path) -> Iterator[UserEntry]:
    actions = (f"actions/{item.text_template}" for item in advice.recommendations)
    notes = (f"notes/{note.text_template}" for note in advice.notes if note.text_template)
    pages = (p.relative_to(folder).as_posix() for p in sorted((folder / _REPORT).glob("*.j2")))
    for path in dict.fromkeys((*actions, *notes, *pages)):
        if (folder / path).is_file():
            known = (data_dir("templates") / path).is_file()
            behind = (path, f"templates/{path}") if known else ("", "")
            yield UserEntry("template", path, f"templates/{path}", *behind)


def switched_off_docs(made: Provenance) -> list[SwitchedOffDoc]:
    """List the built-in rules that the user disabled."""
    return [{"rule": item.name, "at": item.at, "reason": item.reason} for item in made.switched_off]


def said(entry: YoursDoc | None) -> str:
    """Say in a sentence where an entry of the user's stands; empty for a built-in one."""
    if entry is None:
        return ""
    text = str(_entry(entry))
    return f"{text[:1].upper()}{text[1:]}."


def _entry(doc: YoursDoc) -> UserEntry:
    return UserEntry(
        doc["what"],
        doc["name"],
        doc["at"],
        doc["replaces"] or "",
        doc["replaces_at"] or "",
        doc["based_on"] or "",
        tuple(doc["own_fields"]),
    )


def whose(doc: Document) -> str:
    """Name everything of the user's that a report rests on; empty where there is nothing."""
    made = doc["provenance"]
    parts = [named(entry) for entry in made["yours"]]
    off = [
        f"{item['rule']} ({item['at']}: {item['reason'].rstrip('.')})"
        for item in made["switched_off"]
    ]
    sentences = [
        *([f"Yours: {_joined(parts)}."] if parts else []),
        *([f"Switched off: {_joined(off)}."] if off else []),
    ]
    return " ".join(sentences)


def named(entry: YoursDoc) -> str:
    """Name an entry of the user's with its place, and which of its figures are built in."""
    what = _WORDS.get(entry["what"], entry["what"])
    other = entry["replaces"]
    behind = "" if other is None else ", replaces the built-in one"
    if other not in {None, entry["name"]}:
        behind = f", replaces {other}"
    return f"{what} {entry['name']} ({entry['at']}{behind}{_entry(entry).inherited})"


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts).rstrip(".")
