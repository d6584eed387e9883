"""Models on the Hugging Face Hub, by their headers alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from advisor.errors import RequestError, did_you_mean
from advisor.models.hub.client import Client, endpoint
from advisor.models.hub.store import (
    MAX_CONFIG_BYTES,
    MAX_INDEX_BYTES,
    MAX_LISTING_BYTES,
    HubCache,
    Listing,
    Store,
    parse_answer,
)
from advisor.models.hub_names import DEFAULT_REVISION, HubName, parse
from advisor.models.safetensors import shards_of
from advisor.models.stored_tensors import MAX_FILES

_GGUF: Final = ".gguf"
_SAFETENSORS: Final = ".safetensors"
_INDEX: Final = ".safetensors.index.json"
_CONFIG: Final = "config.json"
_WHOLE: Final = "model.safetensors"
_SIDE_FILES: Final = (_CONFIG, "hf_quant_config.json")
_NO_MODELS: Final = ("mmproj", "imatrix")
_SHARD: Final = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.gguf|\.safetensors)")
_MOST_TOWERS: Final = 8
_MOST_LISTED: Final = 8


def choose(name: HubName, store: Store) -> Path:
    """See to the files of a model and give the path to read it by.

    Raises:
        UserError: There is no such file, none at all, or the choice is not clear.
    """
    if not name.wanted:
        return _main_model(name, store)
    path = _wanted(name, store)
    if path.endswith(_GGUF):
        return _gguf(path, store)
    if path.endswith((_SAFETENSORS, _INDEX)):
        return _safetensors(path, store)
    return store.whole(path, MAX_CONFIG_BYTES)


def _main_model(name: HubName, store: Store) -> Path:
    """Safetensors before GGUF before a config.json alone."""
    beside = _in_folder(name.folder, store.listing.files)
    entry = _entry([_last(path) for path in beside])
    if entry is not None:
        _safetensors(_joined(name.folder, entry), store)
        return store.folder / name.folder
    if any(path.endswith(_SAFETENSORS) for path in beside):
        listed = [path for path in beside if path.endswith(_SAFETENSORS)]
        raise _several(store, listed, "several models")
    models = _gguf_models(name.folder, store)
    if models:
        return _gguf(_only(store, models, "several GGUF models"), store)
    if _joined(name.folder, _CONFIG) in beside:
        store.whole(_joined(name.folder, _CONFIG), MAX_CONFIG_BYTES)
        return store.folder / name.folder
    where = f" in {name.folder}" if name.folder else ""
    raise RequestError(
        f"{store.repository} holds no model that advisor reads{where}: "
        "no config.json, safetensors or GGUF file"
    )


def _entry(names: Sequence[str]) -> str | None:
    """Give the file that the reader of a folder would start from; None where that is not clear."""
    indexes = sorted(name for name in names if name.endswith(_INDEX))
    preferred = f"{_WHOLE}.index.json"
    if indexes:
        return preferred if preferred in indexes else indexes[0]
    files = [name for name in names if name.endswith(_SAFETENSORS)]
    if _WHOLE in files:
        return _WHOLE
    sets = {named[1]: name for name in files if (named := _SHARD.fullmatch(name))}
    if len(sets) == 1:
        return next(iter(sets.values()))
    return files[0] if len(files) == 1 else None


def _safetensors(path: str, store: Store) -> Path:
    folder = path.rpartition("/")[0]
    if _joined(folder, _CONFIG) not in store.listing.files:
        raise RequestError(
            f"{store.repository} has no config.json beside {_last(path)}, so its architecture is "
            "unknown; an adapter (LoRA) has none",
            hint="Name the model itself.",
        )
    for name in _SIDE_FILES:
        if _joined(folder, name) in store.listing.files:
            store.whole(_joined(folder, name), MAX_CONFIG_BYTES)
    named = _SHARD.fullmatch(path)
    index = path if path.endswith(_INDEX) else f"{named[1]}{_INDEX}" if named else ""
    if index in store.listing.files:
        shards = shards_of(store.whole(index, MAX_INDEX_BYTES)).files
        store.headers([_joined(folder, shard.name) for shard in shards])
    else:
        store.headers(_set_of(path, store))
    return store.folder / path


def _gguf(path: str, store: Store) -> Path:
    """See to a GGUF file, its other shards, and the image towers beside it."""
    beside = _in_folder(path.rpartition("/")[0], store.listing.files)
    towers = [p for p in beside if _is_gguf(p) and _last(p).casefold().startswith("mmproj")]
    store.headers([*_set_of(path, store), *sorted(towers)[:_MOST_TOWERS]])
    return store.folder / path


def _set_of(path: str, store: Store) -> list[str]:
    """List all shards of a file's set."""
    named = _SHARD.fullmatch(path)
    if named is None:
        return [path]
    count = int(named[3])
    if count > MAX_FILES:
        raise RequestError(f"{store.shown(path)} says it is one of {count} files, too many")
    return [f"{named[1]}-{n:05}-of-{named[3]}{named[4]}" for n in range(1, count + 1)] or [path]


def _wanted(name: HubName, store: Store) -> str:
    """Find a file by its path, its name alone, or its format."""
    files, wanted = store.listing.files, name.wanted
    if not wanted.endswith((_GGUF, _SAFETENSORS, _INDEX, _CONFIG)):
        return _of_format(wanted, store)
    found = [wanted] if wanted in files else [p for p in files if _last(p) == wanted]
    if not found:
        known = sorted(p for p in files if p.endswith((_GGUF, _SAFETENSORS)))
        hint = did_you_mean(wanted, known) or f"It has {_some_of(known)}."
        raise RequestError(f"{store.repository} has no file {wanted}", hint=hint)
    return _only(store, found, f"several files called {wanted}")


def _of_format(wanted: str, store: Store) -> str:
    models = _gguf_models("", store)
    word = re.compile(rf"(?:^|[-._/]){re.escape(wanted)}(?=[-._/])", re.IGNORECASE)
    found = [path for path in models if word.search(path)]
    if not found:
        hint = f"It has {_some_of(models)}." if models else "Name a model with GGUF files."
        raise RequestError(f"{store.repository} has no GGUF file in {wanted}", hint=hint)
    return _only(store, found, f"several GGUF models in {wanted}")


def _gguf_models(folder: str, store: Store) -> list[str]:
    """List GGUF models below a folder, one path for a set of shards."""
    found: dict[str, str] = {}
    start = f"{folder}/" if folder else ""
    for path in sorted(store.listing.files):
        usual = not _last(path).casefold().startswith(_NO_MODELS)
        if path.startswith(start) and _is_gguf(path) and usual:
            named = _SHARD.fullmatch(path)
            found.setdefault(named[1] if named else path, path)
    return list(found.values())


def _only(store: Store, paths: Sequence[str], what: str) -> str:
    if len(paths) == 1:
        return paths[0]
    raise _several(store, paths, what)


def _several(store: Store, paths: Sequence[str], what: str) -> RequestError:
    return RequestError(
        f"{store.repository} holds {what}: {_some_of(paths)}",
        hint=f"Name one, for example {store.shown(paths[0])}.",
    )


def _some_of(paths: Sequence[str]) -> str:
    if not paths:
        return "no weight files"
    more = len(paths) - _MOST_LISTED
    return ", ".join(paths[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _in_folder(folder: str, files: Iterable[str]) -> list[str]:
    return [path for path in files if path.rpartition("/")[0] == folder]


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _is_gguf(path: str) -> bool:
    return path.endswith(_GGUF)


def fetch(text: str, *, offline: bool) -> Path:
    """Read the headers of a model on the hub and give its local file or folder.

    ``text`` is ``org/name[@revision][:file.gguf]``, ``org/name:FORMAT``, or a page of the hub.
    ``offline`` takes only what was read before, as HF_HUB_OFFLINE does.

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
