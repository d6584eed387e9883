"""The part of the result document that says what produced it, the user's own files included."""

from __future__ import annotations

from typing_extensions import TypedDict


class YoursDoc(TypedDict):
    """An entry of the user's own files."""

    what: str
    """rule, template, gpu, model, format, kv_type, framework or policy."""
    name: str
    at: str
    """File and line: ``rules/my.yaml:12``."""
    replaces: str | None
    """The built-in entry whose place it takes; null for one that is added."""
    replaces_at: str | None
    based_on: str | None
    """The built-in entry that it has its other fields from; null where there is none."""
    own_fields: list[str]
    """The fields that an entry based on another one states itself."""


class SwitchedOffDoc(TypedDict):
    """A built-in rule that the user disabled."""

    rule: str
    at: str
    reason: str


class ProvenanceDoc(TypedDict):
    """What produced the document."""

    advisor: str
    rules_sha256: str
    knowledge_sha256: str
    templates_sha256: str
    engine: str
    measurements_sha256: str | None
    """Of the user's own measurements; null without any."""
    yours: list[YoursDoc]
    """What of the user's own rules, templates and knowledge the report rests on."""
    switched_off: list[SwitchedOffDoc]
    """Built-in rules that the user disabled."""
