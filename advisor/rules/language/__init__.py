"""The rule language: YAML files with positions -> checked rules."""

from advisor.rules.language.load import load_rules, parse_rules

__all__ = ["load_rules", "parse_rules"]
