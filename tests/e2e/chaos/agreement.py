"""Checks that the log and Docker agree on what is running, and measures how long that takes after a disturbance.

Input: a node. Output: the differences; the seconds until there were none. Next: the tests of this folder.

The log changes while Docker is queried. So a container agrees if its state in Docker equals its state in the log
immediately before the query or immediately after the response. Containers that were created but not started do not
count.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

import requests
from docker.errors import DockerException

from chronolet.ports.runtime import labels
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Event
from tests.e2e.docker_events import Death
from tests.e2e.journal import Journal
from tests.e2e.node import Node
from tests.support.scratch import hang_limit

_SECONDS = hang_limit(60)
_STATES = {"running": "runs", "paused": "runs", "exited": "dead", "dead": "dead", "removing": "dead", "created": "made"}
_States = Mapping[str, str]
"""The state of each container by id: `runs`, `dead` or `made`; all other containers are `gone`."""


def wait_for_agreement(node: Node, what: str) -> float:
    """Wait until log and Docker agree; return the seconds it took."""
    began = time.monotonic()
    while found := differences(node):
        if time.monotonic() - began > _SECONDS:
            text = "\n".join(found[:20])
            pods = {uid for line in found for uid in re.findall(r"_([0-9a-f]{32})_", line)}
            raise AssertionError(
                f"{what}: {len(found)} differences after {_SECONDS:.0f} s:\n{text}\n"
                f"the log has of these pods\n{node.journal.history(pods)}\nit ends with\n{node.journal.tail(20)}"
            )
        node.journal.read(20)
    took = time.monotonic() - began
    text = f"log and runtime agreed on {len(node.journal.runs)} containers after {took:.2f} s"
    print(f"{what}: {text}")  # noqa: T201 - a measured time
    return took


def lags(node: Node, deaths: Sequence[Death]) -> list[float]:
    """Return the delay in seconds from each of these deaths to its log entry, sorted. Fails if a death is missing or
    was recorded twice.
    """
    node.journal.read()
    recorded = {line.event.id: line.entry.position.milliseconds for line in node.journal.lines if _is_death(line.event)}
    count = sum(_is_death(line.event) for line in node.journal.lines)
    assert {one.id for one in deaths} == set(recorded)
    assert count == len(recorded) == len(deaths), "a death is missing or was recorded twice"
    return sorted((recorded[one.id] - one.at) / 1000 for one in deaths)


def _is_death(event: Event) -> TypeGuard[pleg.ContainerDied]:
    return isinstance(event, pleg.ContainerDied)


def differences(node: Node) -> list[str]:
    """Return one line for each container whose state in Docker differs from that in the log, in the events of `pleg` or
    of `pod`; a container may have one line for each of them. If Docker does not answer, return one line that reports
    this.
    """
    journal = node.journal
    journal.read()
    before = _by_pleg(journal), _by_pods(journal)
    try:
        listed = node.docker.containers(all=True, filters={"label": f"{labels.NODE}={node.name}"})
    except (DockerException, requests.RequestException) as error:
        return [f"Docker does not answer: {error}"]
    journal.read()
    after = _by_pleg(journal), _by_pods(journal)
    names = {one["Id"]: one["Names"][0] for one in listed}
    by_docker = {one["Id"]: _STATES[one["State"]] for one in listed}
    found = list(_different("pleg", by_docker, before[0], after[0]))
    # For dead containers, a pod retains only what it needs.
    running = {container: state for container, state in by_docker.items() if state == "runs"}
    found += _different("pod", running, before[1], after[1])
    return [f"{names.get(line.split()[0], '')} {line}" for line in found]


def _different(actor: str, by_docker: _States, before: _States, after: _States) -> Iterator[str]:
    for container in sorted({*by_docker, *before, *after}):
        state_by_docker = by_docker.get(container, "gone")
        logged = {before.get(container, "gone"), after.get(container, "gone")}
        if state_by_docker not in logged and state_by_docker != "made" and "made" not in logged:
            yield f"{container} {state_by_docker} for Docker, for {actor} {' or '.join(sorted(logged))}"


def _by_pleg(journal: Journal) -> _States:
    """Return the state of each container according to pleg."""
    return {
        container: "made" if run.unknown or not run.state else _STATES[run.state]
        for container, run in journal.runs.items()
    }


def _by_pods(journal: Journal) -> _States:
    """Return the containers that are running according to the pods, including strays."""
    found: dict[str, str] = {}
    for state in journal.pods.values():
        if state.sandbox.phase in ("running", "stopping"):
            found[state.sandbox.id] = "runs"
        found |= {one.id: "runs" for one in state.containers if one.phase in ("running", "stopping")}
        found |= {one.id: "runs" for one in state.strays}
    return found
