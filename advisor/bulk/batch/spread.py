"""Tasks over the processes of this machine or of a cluster, whose results come back in order."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from advisor.bulk.batch.manifest import input_files
from advisor.bulk.batch.store import MANIFEST, sha256_of
from advisor.bulk.batch.worker import Place
from advisor.errors import RequestError
from advisor.files import Kind, code_sha256
from advisor.knowledge.layers import OwnFiles, Stack

T = TypeVar("T")
R = TypeVar("R")
_LOOK_S = 1


def each(place: Place, make: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Make every task, a bounded number in flight; results come in the order of tasks.

    Raises:
        RequestError: The cluster is gone, or has been without workers for a while.
        Exception: Whatever a task raises.
    """
    executor, waiting = place.open(), iter(tasks)
    flying: deque[Future[R]] = deque()
    drop = True
    try:
        while True:
            for task in islice(waiting, max(place.room() - len(flying), 0)):
                flying.append(executor.submit(make, task))
            if not flying:
                break
            if wait([flying[0]], timeout=_LOOK_S).done:
                yield flying.popleft().result()
            else:
                _refuse_to_wait(place)
        drop = False
    except Exception as error:
        raise place.explained(error) from error
    finally:
        place.close(executor, drop=drop)


def _refuse_to_wait(place: Place) -> None:
    if why := place.held_up():
        raise RequestError(why, hint="Run the same command again once there is one.")


@lru_cache(maxsize=2)
def mark_of(root: Path, own: OwnFiles) -> str:
    """Tell a batch, with the program and the files that read it, from any other."""
    folders: Mapping[Kind, Stack] = {
        "rules": own.rules,
        "templates": own.templates,
        "knowledge": own.knowledge,
    }
    told = [sha256_of(root / MANIFEST), code_sha256(), dict(input_files(folders))]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def check_same(root: Path, own: OwnFiles, mark: str) -> None:
    """See that a worker reads the batch that everyone reads, with the same program and files.

    Raises:
        RequestError: It does not.
    """
    if mark_of(root, own) != mark:
        hint = "Every worker needs that folder under the same path, and the same advisor."
        raise RequestError(f"a worker does not see '{root}' as it is here", hint=hint)
