"""The effects that should run in a given state. Pure.

Input: State. Output: the effects of `wanted`. Next: the host, which starts the missing ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from chronolet.devices import wanted
from chronolet.devices.claims.topology import grouped
from chronolet.devices.claims.waiting import available, nodes_of
from chronolet.devices.state import Claim, State


def outstanding(state: State) -> Sequence[wanted.Wanted]:
    """Return every effect that should be running."""
    return (
        wanted.ServeRegistration(subject="registry", intent="serve"),
        wanted.WatchPlugins(subject="watcher", intent="watch"),
        wanted.ServePodResources(subject="pod-resources", intent="serve"),
        *_of_plugins(state),
        *_of_claims(state),
        *((wanted.ListPods(subject="pods", intent="list"),) if state.claims else ()),
    )


class _PluginRef(TypedDict):
    resource: str
    generation: int
    socket: str


def _of_plugins(state: State) -> Iterator[wanted.Wanted]:
    for name, one in state.resources.items():
        if not one.has_plugin:
            continue
        plugin = _PluginRef(resource=name, generation=one.generation, socket=one.socket)
        yield wanted.WatchDevices(subject=f"watch/{name}", intent=f"watch/{one.generation}", **plugin)
        if one.options is None:
            yield wanted.AskOptions(subject=f"options/{name}", intent=f"options/{one.generation}", **plugin)


def _of_claims(state: State) -> Iterator[wanted.Wanted]:
    for key in state.open:
        claim = state.claims[key]
        if claim.phase == "preferring":
            yield _prefer(state, claim)
        elif claim.phase == "allocating":
            yield wanted.Allocate(
                subject=subject_of(claim),
                intent=intent_of(claim),
                resource=claim.resource,
                socket=_socket(state, claim.resource),
                devices=claim.chosen,
            )
        if claim.starting is not None:
            yield _pre_start(state, claim, claim.starting)


def _prefer(state: State, claim: Claim) -> wanted.Prefer:
    resource = state.resources.get(claim.resource)
    free = available(state, claim.resource, () if resource is None else resource.healthy())
    among = grouped(free, nodes_of(state, claim.resource), claim.near).aligned if claim.near else free
    return wanted.Prefer(
        subject=subject_of(claim),
        intent=intent_of(claim),
        resource=claim.resource,
        socket=_socket(state, claim.resource),
        available=tuple(sorted({*among, *claim.must_include})),
        must_include=claim.must_include,
        size=claim.size,
    )


def _pre_start(state: State, claim: Claim, attempt: int) -> wanted.PreStart:
    return wanted.PreStart(
        subject=start_subject_of(claim),
        intent=start_intent_of(claim),
        attempt=attempt,
        calls=tuple(
            wanted.PreStartCall(resource=name, socket=_socket(state, name), devices=one.devices)
            for name, one in sorted(claim.held.items())
            if one.pre_start
        ),
    )


def _socket(state: State, name: str) -> str:
    """The plugin's socket; empty if it has none, in which case the worker reports the plugin as away."""
    resource = state.resources.get(name)
    return resource.socket if resource is not None else ""


def subject_of(claim: Claim) -> str:
    """Subject of the questions about a claim's devices."""
    return f"claim/{claim.id}"


def intent_of(claim: Claim) -> str:
    """Intent of the open question about a claim's devices."""
    return f"{claim.phase}/{claim.serial}"


def start_subject_of(claim: Claim) -> str:
    """Subject of the notifications before a container's start."""
    return f"start/{claim.id}"


def start_intent_of(claim: Claim) -> str:
    """Intent of the notification before a container's start."""
    return f"start/{claim.start_serial}"
