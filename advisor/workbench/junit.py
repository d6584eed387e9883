"""Test results as JUnit XML, for CI."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from advisor.workbench.cases import CaseResult

_ILLEGAL = dict.fromkeys([*range(9), 11, 12, *range(14, 32)])


def junit_xml(results: Sequence[CaseResult]) -> str:
    """Write results: one suite for each file, one test for each case, no times."""
    suites: dict[str, list[CaseResult]] = defaultdict(list)
    for result in results:
        suites[result.source.file if result.source else "rules"].append(result)
    failed = sum(not result.ok for result in results)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="advisor rules" tests="{len(results)}" failures="{failed}">',
    ]
    for file, own in suites.items():
        failures = sum(not result.ok for result in own)
        lines.append(
            f'  <testsuite name={_attribute(file)} tests="{len(own)}" failures="{failures}">'
        )
        for result in own:
            lines += _test(result)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _test(result: CaseResult) -> list[str]:
    line = f' line="{result.source.line}"' if result.source else ""
    file = f" file={_attribute(result.source.file)}" if result.source else ""
    kind = _attribute(result.rule or "scenario")
    head = f"    <testcase classname={kind} name={_attribute(result.name)}{file}{line}"
    if result.ok:
        return [f"{head}/>"]
    text = escape("\n".join([result.problem, *result.details]).translate(_ILLEGAL))
    failure = f"      <failure message={_attribute(result.problem)}>{text}</failure>"
    return [f"{head}>", failure, "    </testcase>"]


def _attribute(text: str) -> str:
    return quoteattr(text.translate(_ILLEGAL), {"\n": "&#10;"})
