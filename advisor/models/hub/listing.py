"""Which files a model on the hub has, at one commit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from advisor.errors import RequestError
from advisor.models.hub.names import is_plain_path

MAX_LISTING_BYTES: Final = 20_000_000
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")
_LARGEST: Final = 1 << 50


class Listing(Struct, frozen=True):
    """The files of a repository."""

    commit: str
    files: Mapping[str, int | None]
    """Path -> size in bytes; None where the hub does not state it."""

    def dumped(self) -> bytes:
        """Give it as JSON, to be read back by ``loaded``."""
        return json.dumps({"commit": self.commit, "files": dict(self.files)}).encode()


def parse_answer(content: bytes, what: str) -> Listing:
    """Read the hub's answer about a model.

    Raises:
        RequestError: It is no such answer.
    """
    found = _json_object(content)
    commit = found.get("sha")
    siblings = found.get("siblings")
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        commit = None
    if commit is None or not isinstance(siblings, list):
        raise RequestError(
            f"the server's answer about {what} is not that of a hub",
            hint="Look at HF_ENDPOINT, or whether a sign-in page stands before the network.",
        )
    return Listing(commit, dict(_files(siblings)))


def loaded(content: bytes) -> Listing | None:
    """Read back what ``dumped`` gave; None where it is damaged."""
    found = _json_object(content)
    commit, files = found.get("commit"), found.get("files")
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit) or not isinstance(files, dict):
        return None
    return Listing(commit, {p: _size(n) for p, n in files.items() if is_plain_path(p)})


def _json_object(content: bytes) -> Mapping[str, object]:
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _files(siblings: list[object]) -> Iterator[tuple[str, int | None]]:
    """Give every file whose path can be used here as it is; no model file has another."""
    for entry in siblings:
        if not isinstance(entry, dict):
            continue
        path, stored = entry.get("rfilename"), entry.get("lfs")
        size = _size(entry.get("size"))
        if size is None and isinstance(stored, dict):
            size = _size(stored.get("size"))
        if isinstance(path, str) and is_plain_path(path):
            yield path, size


def _size(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _LARGEST else None
