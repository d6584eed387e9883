"""What is wrong with files of knowledge that takes models, runtimes and the speed model to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.errors import KnowledgeError, UserError
from advisor.estimator.speed_tables import read_tables
from advisor.knowledge.field_kinds import FlawedError, choice
from advisor.knowledge.file_records import finished_model
from advisor.knowledge.log_patterns import log_pattern_problems
from advisor.knowledge.overlay import entries_of
from advisor.knowledge.parsing import calibration_in
from advisor.knowledge.stacked_files import files_of_user
from advisor.knowledge.types import UNUSUAL, ModelRecord
from advisor.knowledge.validation import record_of
from advisor.models import ONE_OF_BOTH, read_record, total_problem
from advisor.runtimes import memory_models


def parameter_problems(files: Mapping[str, bytes]) -> Sequence[UserError]:
    """Say of every model of a user's, or of all, where its shape cannot be what it states."""
    problems: list[UserError] = []
    user = files_of_user(files)
    for entry in entries_of(files, "models", []):
        if user and entry.place.file not in user:
            continue
        record = finished_model(record_of(ModelRecord, entry), entry)
        try:
            said, hint, lint = total_problem(record, read_record(record)), ONE_OF_BOTH, ""
        except UserError as bad:
            said, hint, lint = f"it cannot be sized: {bad.message}", bad.hint, UNUSUAL
        if said and (user or not lint):
            at = entry.at("config" if lint else "parameters")
            shown = f"model '{entry.name}': {said}"
            problems.append(KnowledgeError(shown, source=at, hint=hint, lint=lint))
    return problems


def memory_model_problems(files: Mapping[str, bytes]) -> Sequence[UserError]:
    """Say of every framework in files of knowledge where it names a memory model that none has."""
    problems: list[UserError] = []
    entries = [*entries_of(files, "frameworks", problems)]
    problems.clear()
    read = choice((*memory_models(), "none"))
    for entry in entries:
        node = entry.values.get("memory_model")
        try:
            _ = node and node.text and read(node)
        except FlawedError as flawed:
            entry.flaws(flawed.flaws, "memory_model")
    return problems


def speed_problems(files: Mapping[str, bytes]) -> Sequence[UserError]:
    """Say what is first wrong with the calibration in files of knowledge."""
    calibration = calibration_in(files, [])
    try:
        if calibration.get("fitted"):
            read_tables(calibration)
    except KnowledgeError as wrong:
        return [wrong]
    return ()


CHECKS = (memory_model_problems, log_pattern_problems, parameter_problems, speed_problems)
"""What ``check_knowledge`` is given beside the files."""
