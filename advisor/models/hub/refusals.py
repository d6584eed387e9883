"""What a hub's refusals mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from advisor.errors import RequestError

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

    Args:
        status: HTTP status, neither good nor a redirect.
        headers: Of the answer.
        what: The file or model asked for, as messages call it.
        token: ``none``, ``sent`` or ``withheld``.
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
