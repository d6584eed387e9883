"""Rule files checked by themselves, without the built-in rules."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.errors import UserError
from advisor.rules.language.model import RuleSet
from advisor.workbench.expectations import case_problem
from advisor.workbench.fact_store_files import store_of
from advisor.workbench.lint import READ_BY_THE_PROGRAM
from advisor.workbench.lint.logic import look_at
from advisor.workbench.lint.problem import Problem, in_order, problem, problems_of
from advisor.workbench.lint.trials import look_at_tried, try_rules
from advisor.workbench.trial import Sight, trial_of
from tests.parsed_rules import parse_rules

TEMPLATES = frozenset({"quantize.md.j2", "offload-layers.md.j2", "heat.md.j2"})


def checked_alone(advisor: Advisor, files: Mapping[str, str]) -> Sequence[Problem]:
    contents = {name: text.encode() for name, text in files.items()}
    try:
        rules = parse_rules(contents, advisor.vocabulary, TEMPLATES, advisor.knowledge.names())
    except UserError as error:
        return problems_of(error)
    ruleset = RuleSet(rules, "")
    found = list(look_at(ruleset, rules, READ_BY_THE_PROGRAM))
    given = [case.given for rule in rules for case in rule.cases]
    tried, contradictions = try_rules(ruleset, [store_of(given, advisor.knowledge)])
    found += contradictions
    found += look_at_tried(tried, rules)
    if not contradictions:
        found += _cases(advisor, ruleset)
    return in_order(found)


def _cases(advisor: Advisor, ruleset: RuleSet) -> Sequence[Problem]:
    """Try the cases; unlike a whole report this needs no rule that gives a verdict."""
    own = replace(advisor, ruleset=ruleset)
    trial = trial_of(own, [(rule, case) for rule in ruleset.rules for case in rule.cases], ())
    sight = Sight(trial, trial.base)
    return [
        problem("case-does-not-match", text, case.source)
        for rule in ruleset.rules
        for case, number in trial.cases.get(rule.id, ())
        if (text := case_problem(rule.id, case, sight.of_case(rule, case, number)))
    ]
