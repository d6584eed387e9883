"""Knowledge files of two folders: contents, whose they are, and what lies behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Files(dict[str, bytes]):
    """Knowledge files by path: the built-in ones with the user's laid over them."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        user: frozenset[str] = frozenset(),
        shadowed: Mapping[str, bytes] | None = None,
        *,
        whole: bool = False,
        unread: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(files)
        self.user = user
        """Paths of the user's files."""
        self.shadowed = shadowed or {}
        """Built-in files at the same paths."""
        self.whole = whole
        """Whether the user has a file for every built-in one: an edited copy of the whole."""
        self.unread = unread
        """Files that nothing reads, each with what to do."""
        self.replaced: dict[str, dict[str, list[str | None]]] = {}
        """Kind -> name -> where the user's entry stands, what it replaces, where that
        stands, what it is based on, and the fields that it then states itself."""
        self.off: dict[str, dict[str, list[str]]] = {}
        """Kind -> name of a built-in entry -> where the user switches it off, and why."""
