"""The recipes of docs/clusters.md for clusters: they were not run, so they must at least add up."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")


def recipe(first: str) -> str:
    """The block of the page that starts with these words."""
    found = re.search(rf"^```[\w -]+\n({re.escape(first)}.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    assert found, first
    return found[1]


def test_the_page_says_that_nobody_ran_them() -> None:
    assert "Neither recipe was run on a real cluster" in DOCS


def test_the_kubernetes_resource_holds_together() -> None:
    found: dict[str, Any] = yaml.safe_load(recipe("apiVersion:"))
    assert (found["apiVersion"], found["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    worker, scheduler = found["spec"]["worker"], found["spec"]["scheduler"]
    (one,) = worker["spec"]["containers"]
    (other,) = scheduler["spec"]["containers"]
    assert one["image"] == other["image"]
    assert one["args"][0] == "dask-worker"
    assert "$(DASK_WORKER_NAME)" in one["args"]
    assert other["args"] == ["dask-scheduler"]
    volumes = {volume["name"] for volume in worker["spec"]["volumes"]}
    assert {mount["name"] for mount in one["volumeMounts"]} == volumes
    assert all(isinstance(value, str) for value in one["args"])
    service = scheduler["service"]
    ports = {port["port"] for port in service["ports"]}
    assert f"tcp://{found['metadata']['name']}-scheduler:{ports.pop()}" in DOCS
    assert service["selector"]["dask.org/cluster-name"] == found["metadata"]["name"]


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_the_slurm_script_is_a_script_and_counts_its_tasks() -> None:
    script = recipe("#!/bin/bash")
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)  # noqa: S607
    assert (done.returncode, done.stderr) == (0, "")
    orders = " ".join(re.findall(r"^#SBATCH (.*)$", script, re.MULTILINE))
    flags = dict(re.findall(r"--([\w-]+)=(\S+)", orders))
    assert set(flags) <= {"ntasks", "cpus-per-task", "mem-per-cpu", "time"}
    steps = [int(number) for number in re.findall(r"^srun --ntasks=(\d+)", script, re.MULTILINE)]
    assert sum(steps) == int(flags["ntasks"])
    assert "--resume" in script


def test_the_arithmetic_of_ten_million_is_right() -> None:
    rate = int(re.search(r"At (\d+) reports per processor second", DOCS)[1])  # type: ignore[index]
    seconds = int(re.search(r"take ([\d,]+) processor seconds", DOCS)[1].replace(",", ""))  # type: ignore[index]
    minutes = int(re.search(r": (\d+) minutes on 64 cores", DOCS)[1])  # type: ignore[index]
    assert seconds == pytest.approx(10_000_000 / rate, rel=0.01)
    assert minutes == pytest.approx(seconds / 64 / 60, rel=0.03)
    shards = int(re.search(r"shards of 256 \| ([\d,]+)", DOCS)[1].replace(",", ""))  # type: ignore[index]
    assert shards == -(-10_000_000 // 256)
