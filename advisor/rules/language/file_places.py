"""Folders of rules: which files are the user's, and where they lie on disk.

Compiled rules know a file by a short name that is the same on every machine
(``rules/fit.yaml``); what a user reads is the path as they typed it or as it is from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Struct

from advisor.errors import Problems, Source, UserError
from advisor.files import data_dir, digest, read_tree
from advisor.knowledge.layers import Layer, Stack, layers, stack

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Places(Struct, frozen=True):
    """Short name of a file -> its path as a user would type it."""

    paths: Mapping[str, str]

    @classmethod
    def of(cls, folders: Stack, *, built_in: bool = True, beside: Iterable[Path] = ()) -> Places:
        """Look up the YAML files of folders of rules; of two with one short name the last counts.

        Args:
            folders: As typed.
            built_in: Whether to look up the built-in rules too; they come first.
            beside: Folders that are no layers.
        """
        named = [Layer(path, short_name(path)) for path in beside]
        named = [*rule_layers(folders), *named]
        if built_in or not stack(folders):
            named.insert(0, Layer(data_dir("rules"), "rules"))
        paths: dict[str, str] = {}
        for one in named:
            if one.folder.is_dir():
                names = read_tree(one.folder, [".yaml", ".yml"])
                paths |= {f"{one.label}/{name}": openable(one.folder / name) for name in names}
        top = stack(folders)[-1:] if stack(folders)[1:] else ()
        for path in top:  # scenarios are those of the highest layer, and named without it
            inside = read_tree(path / "scenarios", [".yaml"])
            paths |= {
                f"{short_name(path)}/scenarios/{n}": openable(path / "scenarios" / n)
                for n in inside
            }
        return cls(paths)

    def source(self, source: Source) -> Source:
        """Give the same place with the path of its file."""
        path = self.paths.get(source.file, source.file)
        return Source(path, source.line, source.column)

    def text(self, text: str) -> str:
        """Put paths for the short names in a message (``first at rules/fit.yaml:1:3``)."""
        for label, path in self.paths.items():
            if f"{label}:" in text:
                text = re.sub(rf"(?<![\w./-]){re.escape(label)}:", lambda _: f"{path}:", text)  # noqa: B023
        return text

    def error(self, error: UserError) -> UserError:
        """Give the same error, or all errors of a group, with paths."""
        if isinstance(error, Problems):
            return Problems(self.error(e) for e in error.errors if isinstance(e, UserError))
        return type(error)(
            self.text(error.message),
            source=self.source(error.source) if error.source else None,
            hint=error.hint,
            lint=error.lint,
            edit=error.edit,
        )


def short_name(folder: Path) -> str:
    """Name a folder without its parents: what is compiled must not depend on where it lies."""
    return "rules" if folder == data_dir("rules") else folder.resolve().name


def rule_layers(folders: Stack) -> tuple[Layer, ...]:
    """Give the user's folders of rules, the lowest first, with their short names."""
    paths = stack(folders)
    return layers(paths, short_name(paths[0]) if paths else "")


def openable(path: Path) -> str:
    """Write a path as typed; an absolute one below the present folder as it is from there.

    The built-in rules of an installed advisor are nobody's to edit, and keep their short name.
    """
    here, built_in = Path.cwd(), data_dir("rules")
    if path.is_absolute() and path.is_relative_to(here):
        path = path.relative_to(here)
    elif path.is_relative_to(built_in):
        path = Path("rules") / path.relative_to(built_in)
    return path.as_posix()


def telling_paths(
    load: Callable[Concatenate[Stack, _P], _T],
) -> Callable[Concatenate[Stack, _P], _T]:
    """Let a function that reads folders of rules raise errors that name paths.

    The folders are its first argument, as typed; what they are laid over is built in.
    """

    @wraps(load)
    def loading(folders: Stack = None, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return load(folders, *args, **kwargs)
        except UserError as error:
            raise Places.of(folders).error(error) from None

    return loading


class Users(Struct, frozen=True):
    """One layer of a user's rule files; names are as messages show them."""

    user: frozenset[str]
    shadowed: Mapping[str, tuple[str, bytes]]
    """File of the user's -> name and content of the built-in file at the same path."""
    whole: bool
    """Whether there is one for every built-in file: an edited copy of the whole set."""

    @classmethod
    def of(cls, user: Mapping[str, str], below: Mapping[str, bytes], label: str) -> Users:
        """Compare a folder with the built-in one.

        Args:
            user: Path below the user's folder -> the name shown.
            below: Path below the built-in folder -> content.
            label: How the built-in folder is called.
        """
        both = {
            user[name]: (f"{label}/{name}", below[name]) for name in sorted(user) if name in below
        }
        return cls(frozenset(user.values()), both, whole=len(both) == len(below))

    @property
    def sha256(self) -> str:
        """Tell layers apart that lead to the same files."""
        user = "\n".join(sorted(self.user)).encode()
        return digest({"": user, **dict(self.shadowed.values())})
