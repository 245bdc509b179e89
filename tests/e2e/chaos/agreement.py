"""Whether the log and the runtime say the same of what runs, and how long after a disturbance they do.

Input: a node. Output: where the two differ; the seconds until they did not. Next: the tests of this folder.

The log moves while Docker is asked. So a container agrees if Docker says of it what the log said just before the
question or just after the answer. What is made and was not started is nobody's news.
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
from tests.e2e.journal import Journal
from tests.e2e.node import Node
from tests.e2e.witness import Death
from tests.support.scratch import hang_limit

_SECONDS = hang_limit(60)
_WORDS = {"running": "runs", "paused": "runs", "exited": "dead", "dead": "dead", "removing": "dead", "created": "made"}
_Claims = Mapping[str, str]
"""Container id -> `runs`, `dead` or `made`; what is not in it is `gone`."""


def wait_for_agreement(node: Node, what: str) -> float:
    """Until both say the same, counted from now; the seconds it took."""
    began = time.monotonic()
    while found := differences(node):
        if time.monotonic() - began > _SECONDS:
            said = "\n".join(found[:20])
            pods = {uid for line in found for uid in re.findall(r"_([0-9a-f]{32})_", line)}
            raise AssertionError(
                f"{what}: {len(found)} differences after {_SECONDS:.0f} s:\n{said}\n"
                f"of these pods the log has\n{node.journal.history(pods)}\nit ends with\n{node.journal.tail(20)}"
            )
        node.journal.read(20)
    took = time.monotonic() - began
    said = f"log and runtime agreed on {len(node.journal.runs)} containers after {took:.2f} s"
    print(f"{what}: {said}")  # noqa: T201 - asked for
    return took


def lags(node: Node, deaths: Sequence[Death]) -> list[float]:
    """How many seconds after each of these deaths the log had it. Fails for one that it never had, or had twice."""
    node.journal.read()
    told = {line.event.id: line.entry.position.milliseconds for line in node.journal.lines if _is_death(line.event)}
    count = sum(_is_death(line.event) for line in node.journal.lines)
    assert {one.id for one in deaths} == set(told)
    assert count == len(told) == len(deaths), "each once"
    return sorted((told[one.id] - one.at) / 1000 for one in deaths)


def _is_death(event: Event) -> TypeGuard[pleg.ContainerDied]:
    return isinstance(event, pleg.ContainerDied)


def differences(node: Node) -> list[str]:
    """A line for each container of which the log, `pleg` or `pod`, and Docker do not say the same."""
    journal = node.journal
    journal.read()
    before = _seen(journal), _wanted(journal)
    try:
        listed = node.docker.containers(all=True, filters={"label": f"{labels.NODE}={node.name}"})
    except (DockerException, requests.RequestException) as error:
        return [f"Docker does not answer: {error}"]
    journal.read()
    after = _seen(journal), _wanted(journal)
    names = {one["Id"]: one["Names"][0] for one in listed}
    has = {one["Id"]: _WORDS[one["State"]] for one in listed}
    found = list(_unlike("pleg", has, before[0], after[0]))
    # Of what is dead a pod remembers only what it needs.
    running = {container: word for container, word in has.items() if word == "runs"}
    found += _unlike("pod", running, before[1], after[1])
    return [f"{names.get(line.split()[0], '')} {line}" for line in found]


def _unlike(who: str, has: _Claims, before: _Claims, after: _Claims) -> Iterator[str]:
    for container in sorted({*has, *before, *after}):
        word = has.get(container, "gone")
        said = {before.get(container, "gone"), after.get(container, "gone")}
        if word not in said and word != "made" and "made" not in said:
            yield f"{container} {word} for Docker, for {who} {' or '.join(sorted(said))}"


def _seen(journal: Journal) -> _Claims:
    """By pleg."""
    return {
        container: "made" if run.unknown or not run.state else _WORDS[run.state]
        for container, run in journal.runs.items()
    }


def _wanted(journal: Journal) -> _Claims:
    """What the pods say of what runs as theirs, or is a stray of theirs."""
    found: dict[str, str] = {}
    for state in journal.pods.values():
        if state.sandbox.phase in ("running", "stopping"):
            found[state.sandbox.id] = "runs"
        found |= {one.id: "runs" for one in state.containers if one.phase in ("running", "stopping")}
        found |= {one.id: "runs" for one in state.strays}
    return found
