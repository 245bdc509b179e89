"""Computes the effects that should be running in a given state. Pure.

Input: State. Output: effects from `wanted`. Next: the host, which starts those that are not running.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from chronolet.devices import wanted
from chronolet.devices.claims import questions
from chronolet.devices.state import State


def outstanding(state: State) -> Sequence[wanted.Wanted]:
    """Return every effect that should be running."""
    return (
        wanted.ServeRegistration(subject="registry", intent="serve"),
        wanted.WatchPlugins(subject="watcher", intent="watch"),
        wanted.ServePodResources(subject="pod-resources", intent="serve"),
        *_of_plugins(state),
        *questions.outstanding(state),
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
