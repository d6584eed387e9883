"""Where work in bulk is done: processes of this machine, or a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.bulk.batch.worker import Cluster, connected

Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one for each core if left out.")
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
]


def refuse_both(workers: int | None, scheduler: str | None) -> None:
    """Refuse a number of processes where a cluster does the work."""
    if workers and scheduler:
        raise typer.BadParameter(
            "is for a pool; the cluster has its own.", param_hint="'--workers'"
        )


def cluster_of(workers: int | None, scheduler: str | None) -> Cluster | None:
    """Connect to a cluster where one is named.

    Raises:
        RequestError: No scheduler answers.
    """
    refuse_both(workers, scheduler)
    return connected(scheduler) if scheduler else None
