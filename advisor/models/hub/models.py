"""Models on the Hugging Face Hub: only the headers of their files, as local files with holes.

``fetch`` gives a path that the readers of local files take unchanged. Nothing here is imported
unless the user asks for the hub.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from advisor.errors import RequestError
from advisor.models.hub.cache import HubCache
from advisor.models.hub.choice import choose
from advisor.models.hub.client import Client, endpoint
from advisor.models.hub.listing import MAX_LISTING_BYTES, Listing, parse_answer
from advisor.models.hub.names import DEFAULT_REVISION, HubName, parse
from advisor.models.hub.store import Store


def fetch(text: str, *, offline: bool) -> Path:
    """Read the headers of a model on the hub and give its local file or folder.

    Args:
        text: ``org/name[@revision][:file.gguf]``, ``org/name:FORMAT``, or a page of the hub.
        offline: Take only what was read before. HF_HUB_OFFLINE does the same.

    Raises:
        UserError: It is not there, not readable, too large, damaged, or was not read before.
    """
    root = endpoint()
    name = parse(text, root)
    cache = HubCache(root, name)
    if offline or _is_forbidden():
        return _read_before(name, cache)
    with Client(root, name.repository) as client:
        listing = _listing(client, name)
        store = Store(name.repository, listing, cache.folder(listing.commit), client)
        path = choose(name, store)
    cache.remember(listing)
    return path


def repository_of(text: str) -> str | None:
    """Give ``org/name`` where a text names no more than that; None where it says more.

    Raises:
        RequestError: It is an address of something else, or HF_ENDPOINT is none.
    """
    name = parse(text, endpoint())
    return name.repository if name.is_bare else None


def _is_forbidden() -> bool:
    stated = os.environ.get("HF_HUB_OFFLINE", "").strip().casefold()
    return stated in {"1", "on", "yes", "true"}


def _read_before(name: HubName, cache: HubCache) -> Path:
    listing = cache.listing()
    if listing is None:
        raise RequestError(
            f"{_shown(name)} was not read from the hub before, and the network is forbidden",
            hint="Run once with --hub and without --offline.",
        )
    return choose(name, Store(name.repository, listing, cache.folder(listing.commit), None))


def _listing(client: Client, name: HubName) -> Listing:
    revision = quote(name.revision, safe="")
    path = f"api/models/{name.repository}/revision/{revision}?blobs=true"
    what = _shown(name)
    return parse_answer(client.whole(path, what, MAX_LISTING_BYTES), what)


def _shown(name: HubName) -> str:
    usual = name.revision == DEFAULT_REVISION
    return name.repository if usual else f"{name.repository}@{name.revision}"
