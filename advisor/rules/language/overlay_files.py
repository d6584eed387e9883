"""Which rule files are the user's, and which built-in ones they stand in front of."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from advisor.files import digest


class Layer(Struct, frozen=True):
    """A user's rule files over the built-in ones; names are as messages show them."""

    own: frozenset[str]
    shadowed: Mapping[str, tuple[str, bytes]]
    """File of the user's -> name and content of the built-in file at the same path."""
    whole: bool
    """Whether there is one for every built-in file: an edited copy of the whole set."""

    @classmethod
    def of(cls, own: Mapping[str, str], below: Mapping[str, bytes], label: str) -> Layer:
        """Compare two folders.

        Args:
            own: Path below the user's folder -> the name shown.
            below: Path below the built-in folder -> content.
            label: How the built-in folder is called.
        """
        both = {
            own[name]: (f"{label}/{name}", below[name]) for name in sorted(own) if name in below
        }
        return cls(frozenset(own.values()), both, whole=len(both) == len(below))

    @property
    def sha256(self) -> str:
        """Tell layers apart that lead to the same files."""
        own = "\n".join(sorted(self.own)).encode()
        return digest({"": own, **dict(self.shadowed.values())})
