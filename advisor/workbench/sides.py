"""The two sides of a comparison: rules, templates and knowledge as they are, and as they were."""

from __future__ import annotations

import io
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from advisor.advice import Advisor
from advisor.errors import Problems, RequestError, UserError
from advisor.files import Kind, data_dir, digest, read_tree
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack, behind, overlaid, stack
from advisor.remedies import rule_vocabulary
from advisor.rules.engine import make_engine
from advisor.rules.language import load_rules
from advisor.rules.language.model import text_names
from advisor.workbench.fact_store_files import Origin

BUILT_IN = "built-in"
"""Names a base without files of the user's."""
KINDS: tuple[Kind, ...] = ("rules", "templates", "knowledge")
_TEXTS = (".j2", ".txt")


class Folders(Struct, frozen=True):
    """Where a side's files are; ``over`` says whether they lie over the built-in ones.

    Where there is none of a kind, it is the built-in one.
    """

    rules: Stack = None
    templates: Stack = None
    knowledge: Stack = None
    over: bool = True

    def of(self, kind: Kind) -> tuple[Path, ...]:
        """Give the folders of one kind, the lowest first."""
        given: Stack = getattr(self, kind)
        return stack(given) or (data_dir(kind),)


class Side(Struct, frozen=True):
    """One side, loaded."""

    advisor: Advisor
    folders: Folders
    templates: Mapping[str, bytes]

    @property
    def origin(self) -> Origin:
        """Where its facts come from."""
        alone = bool(self.folders.knowledge) and not self.folders.over
        return Origin(self.folders.knowledge, alone)


def load_side(folders: Folders) -> Side:
    """Load what is in these folders.

    Raises:
        UserError: A file is wrong; every problem at once.
    """
    alone = bool(folders.knowledge) and not folders.over
    known = load_knowledge(folders.knowledge, alone=alone)
    vocabulary = rule_vocabulary(folders.knowledge)
    templates = _templates(folders)
    laid_over = bool(folders.rules) and folders.over
    ruleset = load_rules(
        folders.rules,
        vocabulary=vocabulary,
        templates=text_names(templates),
        names=known.names(),
        over=data_dir("rules") if laid_over else None,
    )
    engine = make_engine(ruleset, prefer="reference")
    hidden = behind("templates", folders.templates, _TEXTS) if folders.over else {}
    advisor = Advisor(known, vocabulary, ruleset, engine, digest({**templates, **hidden}))
    return Side(advisor, folders, templates)


def _templates(folders: Folders) -> Mapping[str, bytes]:
    if folders.over or not folders.templates:
        return overlaid("templates", folders.templates, _TEXTS)
    return {
        n: text for path in folders.of("templates") for n, text in read_tree(path, _TEXTS).items()
    }


@contextmanager
def base_side(base: str, now: Folders) -> Iterator[Side]:
    """Load the other side: a folder, or the same folders at a git revision.

    Args:
        base: A folder of rules, a folder that holds rules/, templates/ or knowledge/, a
            revision of the repository in which the present folders lie, or ``built-in``.
        now: The present folders.

    Raises:
        UserError: There is no such folder or revision, or something in it is wrong.
    """
    with TemporaryDirectory(prefix="advisor-base-") as scratch:
        path = Path(base)
        if base == BUILT_IN and not path.exists():
            folders = Folders()
        elif path.is_dir():
            folders = _folder(path, now)
        else:
            folders = _checked_out(base, now, Path(scratch))
        try:
            side = load_side(folders)
        except Problems as errors:
            raise Problems([_of_base(base, e) for e in errors.errors]) from None
        except UserError as error:
            raise _of_base(base, error) from None
        yield side


def _of_base(base: str, error: UserError) -> UserError:
    return type(error)(f"in {base}: {error.message}", source=error.source, hint=error.hint)


def _folder(path: Path, now: Folders) -> Folders:
    inside: dict[Kind, Stack] = {kind: path / kind for kind in KINDS if (path / kind).is_dir()}
    if not inside:
        if not any(path.rglob("*.yaml")):
            message = f"{path} holds neither rules/, templates/ nor knowledge/, nor a rule file"
            raise RequestError(message, hint="Name a folder of rules, or a git revision.")
        inside = {"rules": path}
    return _based(inside, now)


def _based(found: Mapping[Kind, Stack], now: Folders) -> Folders:
    """Take the present folder of every kind that the base does not have."""
    return Folders(
        found.get("rules", now.rules),
        found.get("templates", now.templates),
        found.get("knowledge", now.knowledge),
        over=_is_overlay(now),
    )


def _is_overlay(now: Folders) -> bool:
    return any(getattr(now, kind) for kind in KINDS)


def _checked_out(revision: str, now: Folders, scratch: Path) -> Folders:
    """Write the folders as they were at a revision into ``scratch``."""
    overlay = _is_overlay(now)
    found: dict[Kind, Stack] = {}
    missing = []
    for kind in KINDS:
        if overlay and not getattr(now, kind):
            continue
        folders = now.of(kind)
        then = [
            scratch / str(n) / kind if len(folders) > 1 else scratch / kind
            for n, _ in enumerate(folders)
        ]
        there = [to for at, to in zip(folders, then, strict=True) if _extract(revision, at, to)]
        if there:
            found[kind] = tuple(there)
        missing += [str(at) for at, to in zip(folders, then, strict=True) if to not in there]
    if not found:
        raise RequestError(
            f"at {revision} there is nothing in {', '.join(missing)}",
            hint="Name a revision that has these folders.",
        )
    return _based(found, now)


def _extract(revision: str, folder: Path, target: Path) -> bool:
    """Write a folder as it was; False where it did not exist."""
    where = folder.resolve()
    top = _git(where, "rev-parse", "--show-toplevel", revision=revision)
    inside = where.relative_to(Path(top.decode().strip()).resolve()).as_posix()
    commit = _git(
        where, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", revision=revision
    )
    name = commit.decode().strip()
    root = Path(top.decode().strip())
    listed = _git(root, "ls-tree", "-r", "--name-only", name, "--", inside, revision=revision)
    if not listed.strip():
        return False
    packed = _git(root, "archive", "--format=zip", f"{name}:{inside}", revision=revision)
    target.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(target)
    return True


def _git(folder: Path, *arguments: str, revision: str) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - fixed program, arguments as a list
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        message = f"'{revision}' is no folder, and git is not installed to look for a revision"
        raise RequestError(message, hint="Name a folder.") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = f" ({said[-1]})" if said else ""
        raise RequestError(
            f"'{revision}' is neither a folder nor a git revision of {folder}{why}",
            hint="Name a folder of rules, or a revision such as HEAD or main.",
        )
    return done.stdout
