"""Names and addresses of models on the hub: ``org/name``, a revision, and a file or format.

Forms: ``org/name[@revision][:file.gguf]``, ``org/name:Q4_K_M`` as llama.cpp writes it, and the
hub's own pages (``https://HUB/org/name``, ``.../tree/...``, ``.../blob/...``, ``.../resolve/...``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_CACHE: Final = re.compile(r"models--([^/\\]+?)--([^/\\]+)")
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)
_PAGES: Final = ("tree", "blob", "resolve", "raw")
_FILES: Final = ("blob", "resolve", "raw")
_ABOUT: Final = frozenset(
    {"discussions", "commit", "commits", "edit", "settings", "summary", "files"}
)
"""Pages about a repository, here and on its mirrors."""
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


def in_cache(path: str) -> str:
    """Give the repository in whose folder of the hub's cache a path lies; empty: in none."""
    found = _CACHE.search(path)
    return f"{found[1]}/{found[2]}" if found else ""


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

    Addresses of the hub in use, ``endpoint``, are taken, and those of the public one.

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
        address, hub = urlsplit(text), urlsplit(endpoint)
        host = address.hostname or ""
        ours = host in PUBLIC_HOSTS or (host, address.port) == (hub.hostname, hub.port)
    except ValueError:
        raise RequestError(f"'{text[:200]}' is no web address", hint=_FORM) from None
    if not ours or address.username is not None:
        raise RequestError(
            f"'{_without_query(address)}' is not an address of the hub at {hub.hostname}",
            hint=_FORM,
        )
    path = address.path
    if host == hub.hostname and hub.path.strip("/"):
        path = path.removeprefix(hub.path.rstrip("/"))
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
    if not rest or rest[0] in _ABOUT:
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


_UNAUTHORISED, _FORBIDDEN, _MISSING, _GONE, _TOO_MANY = 401, 403, 404, 410, 429
_NO_RANGE: Final = 416
_LEAST_SERVER_FAULT: Final = 500
_LONGEST_WAIT: Final = 5
_TOKEN_HINTS: Final[Mapping[str, str]] = {
    "none": "Set HF_TOKEN to a token that may read it.",
    "sent": "The token in HF_TOKEN may not read it: ask for access on the model's page.",
    "withheld": "HF_TOKEN is not sent over plain http: set HF_ENDPOINT to an https address.",
}


class Refused(Exception):  # noqa: N818  it is no error of ours until the last try
    """A server's answer other than the file.

    Args:
        status: HTTP status.
        error: What the user is told.
        wait_seconds: How long the server asks to wait; None where it does not say.
    """

    def __init__(self, status: int, error: RequestError, wait_seconds: float | None) -> None:
        self.status = status
        self.error = error
        self.wait_seconds = wait_seconds
        super().__init__(error.message)


def refusal(status: int, headers: Mapping[str, str], what: str, token: str) -> Refused:
    """Say what a status means.

    ``token`` is ``none``, ``sent`` or ``withheld``.
    """
    code = headers.get("X-Error-Code", "")
    if status in {_UNAUTHORISED, _FORBIDDEN}:
        error = _no_access(status, code, what, token)
    elif status in {_MISSING, _GONE}:
        error = _missing(code, what)
    else:
        error = _other(status, what)
    return Refused(status, error, _wait(headers.get("Retry-After", "")))


def _no_access(status: int, code: str, what: str, token: str) -> RequestError:
    if code == "GatedRepo":
        text = f"{what} is gated: its terms must be accepted on the model's page"
    elif code == "RepoNotFound" or status == _UNAUTHORISED:
        # The hub says 401 for names that do not exist, so as not to reveal private ones.
        text = f"there is no public {what}: it does not exist, or is private or gated"
    else:
        text = f"the hub refuses access to {what}"
    return RequestError(text, hint=_TOKEN_HINTS[token])


def _missing(code: str, what: str) -> RequestError:
    if code == "RevisionNotFound":
        return RequestError(f"the hub has no such revision: {what}", hint="Try @main.")
    return RequestError(f"the hub has no {what}", hint="Look at how its page spells it.")


def _other(status: int, what: str) -> RequestError:
    if status == _TOO_MANY:
        text = f"the hub asks for a pause before it gives {what} (too many requests)"
        return RequestError(text, hint="Wait some minutes; a token in HF_TOKEN allows more.")
    if status >= _LEAST_SERVER_FAULT:
        text = f"the hub has a fault at the moment (status {status}) and does not give {what}"
        return RequestError(text, hint="Try later, or --offline for what was read before.")
    if status == _NO_RANGE:
        return RequestError(f"the hub says that {what} is shorter than its listing states")
    return RequestError(f"the hub answers with status {status} when asked for {what}")


def _wait(text: str) -> float | None:
    digits = text.strip()
    usable = digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_WAIT
    return float(digits) if usable else None


_SIZES: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z\d])", re.IGNORECASE)
_FAR: Final = 2.0  # the number of a name is none of its parameters where it is so often as large


def label_in(name: str, parameters: int) -> float | None:
    """Read the one number in a name that tells its parameters, in billions: ``granite-4.2-3b``."""
    said = _SIZES.findall(name.replace("_", "-"))
    told = float(said[0][0]) * (1 if said[0][1] in "bB" else 1e-3) if len(said) == 1 else 0.0
    near = told and told / _FAR <= parameters / 1e9 <= told * _FAR
    return told if near else None
