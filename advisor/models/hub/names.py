"""Names and addresses of models on the hub: ``org/name``, a revision, and a file or format.

Forms: ``org/name[@revision][:file.gguf]``, ``org/name:Q4_K_M`` as llama.cpp writes it, and the
hub's own pages (``https://HUB/org/name``, ``.../tree/...``, ``.../blob/...``, ``.../resolve/...``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from advisor.errors import RequestError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

DEFAULT_REVISION: Final = "main"
PUBLIC_HOSTS: Final = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_MOST_LETTERS: Final = 1_000
_PART: Final = r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,95}"
_NAME: Final = re.compile(rf"({_PART}/{_PART})(?:@([^\s@:?#\\]+))?(?::([^\s:?#\\]+))?")
_REPOSITORY: Final = re.compile(rf"{_PART}(?:/{_PART})?")
_PLAIN_PART: Final = re.compile(r'[^/\\:*?"<>|\x00-\x1f\x7f]{1,200}')
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)
_PAGES: Final = ("tree", "blob", "resolve", "raw")
_FILES: Final = ("blob", "resolve", "raw")
_OTHER_KINDS: Final = frozenset({"datasets", "spaces", "docs", "papers", "collections", "api"})
_FORM: Final = "Write org/name, org/name@revision or org/name:file.gguf."


class HubName(Struct, frozen=True):
    """What a text names on the hub."""

    repository: str
    revision: str = DEFAULT_REVISION
    wanted: str = ""
    """A file's path in the repository, or a format (``Q4_K_M``); empty for the model itself."""
    folder: str = ""
    """Look only here (from the address of a folder)."""

    @property
    def is_bare(self) -> bool:
        """Whether it names no more than a repository."""
        return not self.wanted and not self.folder and self.revision == DEFAULT_REVISION


def is_address(text: str) -> bool:
    """Whether a text is written as a web address."""
    return _ADDRESS.match(text) is not None


def has_hub_form(text: str) -> bool:
    """Whether a text can name a model on the hub."""
    return is_address(text) or (len(text) <= _MOST_LETTERS and bool(_NAME.fullmatch(text)))


def is_plain_path(path: str) -> bool:
    """Whether a path in a repository can be used for a local file as it is."""
    parts = path.split("/")
    return len(path) <= _MOST_LETTERS and all(
        _PLAIN_PART.fullmatch(part) and part.strip(". ") and part[-1] not in ". " for part in parts
    )


def parse(text: str, endpoint: str) -> HubName:
    """Read a name or an address.

    Args:
        text: What the user wrote.
        endpoint: Root of the hub in use; its addresses are taken, and those of the public one.

    Raises:
        RequestError: It is neither, or an address of something else.
    """
    if is_address(text):
        return _from_address(text, endpoint)
    named = _NAME.fullmatch(text) if len(text) <= _MOST_LETTERS else None
    if named is None:
        raise RequestError(f"'{text[:200]}' is no name of a model on the hub", hint=_FORM)
    return _checked(text, HubName(named[1], named[2] or DEFAULT_REVISION, named[3] or ""))


def _from_address(text: str, endpoint: str) -> HubName:
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415  only for addresses

    try:
        address, own = urlsplit(text), urlsplit(endpoint)
        host = address.hostname or ""
        ours = host in PUBLIC_HOSTS or (host, address.port) == (own.hostname, own.port)
    except ValueError:
        raise RequestError(f"'{text[:200]}' is no web address", hint=_FORM) from None
    if not ours or address.username is not None:
        raise RequestError(
            f"'{_without_query(address)}' is not an address of the hub at {own.hostname}",
            hint=_FORM,
        )
    path = address.path
    if host == own.hostname and own.path.strip("/"):
        path = path.removeprefix(own.path.rstrip("/"))
    return _from_parts([unquote(part) for part in path.split("/") if part], text)


def _without_query(address: SplitResult) -> str:
    """Shorten an address for a message; what follows the path may hold a signature."""
    return f"{address.scheme}://{address.hostname}{address.path}"[:200]


def _from_parts(parts: list[str], text: str) -> HubName:
    shown = text.partition("?")[0][:200]
    if not parts or parts[0] in _OTHER_KINDS:
        raise RequestError(f"'{shown}' is no page of a model", hint=_FORM)
    length = 1 if len(parts) == 1 or parts[1] in _PAGES else 2
    repository, rest = "/".join(parts[:length]), parts[length:]
    if not rest:
        return _checked(shown, HubName(repository))
    if rest[0] not in _PAGES or len(rest) == 1:
        raise RequestError(f"'{shown}' is no page of a model or its files", hint=_FORM)
    depth = 3 if rest[1] == "refs" else 1
    revision, path = "/".join(rest[1 : 1 + depth]), "/".join(rest[1 + depth :])
    if rest[0] in _FILES:
        return _checked(shown, HubName(repository, revision, wanted=path))
    return _checked(shown, HubName(repository, revision, folder=path))


def _checked(text: str, name: HubName) -> HubName:
    paths = [part for part in (name.wanted, name.folder) if part]
    parts_fit = _REPOSITORY.fullmatch(name.repository) and ".." not in name.repository
    if not parts_fit or not all(map(is_plain_path, (name.revision, *paths))):
        raise RequestError(f"'{text[:200]}' is no name of a model on the hub", hint=_FORM)
    return name
