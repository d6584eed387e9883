"""What was read from a hub, kept below the user's cache folder.

Files lie under their commit, which never changes, and appear whole or not at all: a file is
written beside its place and then renamed, so several processes may read the same model at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from advisor.errors import RequestError
from advisor.files import user_cache_dir
from advisor.models.hub.listing import Listing, loaded

if TYPE_CHECKING:
    from advisor.models.hub.names import HubName

_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9.\-]+")
_KEY_LENGTH: Final = 12


class HubCache:
    """The place of one model of one hub.

    Args:
        root: The hub's address.
        name: The model, at a revision.
    """

    def __init__(self, root: str, name: HubName) -> None:
        hub = f"{_UNUSUAL.sub('_', urlsplit(root).netloc)}-{_key(root)}"
        publisher, _, self._model = name.repository.rpartition("/")
        self._revision = name.revision
        self._folder = user_cache_dir() / "hub" / hub / (publisher or "_") / self._model
        self._reference = self._folder / "refs" / f"{_key(name.revision)}.json"

    def folder(self, commit: str) -> Path:
        """Give the folder of a commit's files; readers call the model by its last part."""
        return self._folder / commit / self._model

    def listing(self) -> Listing | None:
        """Give what the revision held when it was last read."""
        try:
            return loaded(self._reference.read_bytes())
        except OSError:
            return None

    def remember(self, listing: Listing) -> None:
        """Note what the revision holds.

        Raises:
            RequestError: The cache folder cannot be written.
        """
        content = listing.dumped()
        put(self._reference, content, len(content))


def holds(path: Path, size: int | None) -> bool:
    """Whether a file was read before, of the stated size."""
    try:
        found = path.stat()
    except OSError:
        return False
    return size is None or found.st_size == size


def put(path: Path, content: bytes, size: int) -> None:
    """Write a file that starts with ``content`` and is a hole up to ``size`` bytes.

    Raises:
        RequestError: The cache folder cannot be written, or the disk is full.
    """
    import tempfile  # noqa: PLC0415  needed only when something was read

    kept = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            kept = Path(file.name)
            file.write(content)
            file.truncate(size)
            file.flush()
            os.fsync(file.fileno())
        kept.replace(path)
        kept = None
    except OSError as bad:
        raise _unwritable(path, bad) from None
    finally:
        if kept is not None:
            kept.unlink(missing_ok=True)


def _unwritable(path: Path, bad: OSError) -> RequestError:
    return RequestError(
        f"'{path.name}' cannot be written to the cache folder {user_cache_dir() / 'hub'} "
        f"({bad.strerror or bad})",
        hint="ADVISOR_CACHE_DIR names another place.",
    )


def is_json_object(content: bytes) -> bool:
    """Whether a small file holds a JSON object."""
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
