"""Replays the log step by step, and finds out which objects each step changed.

Input: a session at the moment where the replay begins, steps. Output: a `Frame` per step. Next: `printing`, `stepping`.
Only the objects that a step can have changed are compared: converting all of them for each step would take too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from chronolet.cli.get import devices, images, nodes
from chronolet.cli.history.changes import Change, Key, Object, changes
from chronolet.cli.replay.steps import Step
from chronolet.cli.replay.wanted import Wanted
from chronolet.cli.session import Session
from chronolet.devices.state import Claim
from chronolet.history.state import Folding, Moment
from chronolet.node.http import api_node
from chronolet.node.http.api_pods import PodObjects

_SOURCES = {"devices": ("devices",), "images": ("image_gc",), "nodes": ("qos", "pleg", "devices")}
"""The kinds whose entries can change objects of these types."""


class Frame(NamedTuple):
    """A step and the objects that it changed."""

    step: Step
    changes: tuple[Change, ...]


class Touched(NamedTuple):
    """What a step may have changed: pods, by namespace/name, and types of which all objects may have changed."""

    pods: frozenset[str]
    types: frozenset[str]


def frames(node: Session, wanted: Wanted, found: Iterable[Step]) -> Iterator[Frame]:
    """Fold the steps, which follow the session's moment, and yield a frame for each one with an entry to show, or that
    changed one of these objects: then with all of its entries, as they say why.

    The session's moment may change as soon as this returns. Undecodable entries are added to those that the session
    reports.
    """
    objects = Objects(node, wanted)
    folding = node.folding(*wanted.kinds(), pods=wanted.pods)
    return _folded(node, wanted, objects, folding, found)


def _folded(
    node: Session, wanted: Wanted, objects: Objects, folding: Folding, found: Iterable[Step]
) -> Iterator[Frame]:
    for step in found:
        before = _kept(folding)
        folding.read(step.entries)
        after = Moment(folding.at, folding.states)
        node.unreadable.update(folding.take_unreadable())
        touched = objects.touched(step, before, after)
        shown = tuple(one for one in step.entries if wanted.shows(one))
        changed = tuple(changes(objects.of(before, touched), objects.of(after, touched)))
        if shown or changed:
            yield Frame(Step(shown or step.entries), changed)


def _kept(folding: Folding) -> Moment:
    """Return the present moment with tables of its own, which the folding does not change."""
    return Moment(folding.at, {kind: dict(states) for kind, states in folding.states.items()})


class Objects:
    """The node's objects in the form of `get -o json`."""

    def __init__(self, node: Session, wanted: Wanted) -> None:
        """Read the time of the log's first entry, which is when the node was created."""
        self._name = node.settings.node
        self._wanted = wanted
        self._pods: dict[str, PodObjects] = {}
        self._created_at = nodes.created_at(node) if "nodes" in wanted.types else 0

    def touched(self, step: Step, before: Moment, after: Moment) -> Touched:
        """Return what the step may have changed between these moments."""
        entities = [one.entity.partition("/") for one in step.entries]
        kinds = {kind for kind, _, _ in entities}
        pods = {key for kind, _, key in entities if kind == "pod"}
        if "devices" in kinds:  # a pod's status shows the health of its devices
            pods |= {claim.pod for one in (before, after) for claim in _claims(one)}
        types = frozenset(
            name for name in self._wanted.types if name in _SOURCES and not kinds.isdisjoint(_SOURCES[name])
        )
        return Touched(frozenset(key for key in pods if self._wanted.has_pod(key)), types)

    def of(self, moment: Moment, touched: Touched) -> dict[Key, Object]:
        """Return these objects as they are at that moment; those that do not exist are missing."""
        found: dict[Key, Object] = {}
        for key in touched.pods:
            namespace, _, name = key.partition("/")
            found |= {(namespace, f"pod/{name}"): pod for pod in self._pod(moment, key)}
        if "devices" in touched.types:
            known = devices.of(devices.state_of(moment))
            found |= {("", f"device/{devices.name_of(one)}"): one for one in known}
        if "images" in touched.types:
            found |= {("", f"image/{one['id']}"): one for one in images.of(images.state_of(moment))}
        if "nodes" in touched.types:
            facts = api_node.facts(moment, None, 0)
            found["", f"node/{self._name}"] = api_node.api_node(facts, self._name, self._created_at)
        return found

    def _pod(self, moment: Moment, key: str) -> Sequence[Object]:
        """Return one pod, or nothing. The pod before a step is mostly the one after an earlier step."""
        known = moment.states["pod"]
        alone = {**moment.states, "pod": {key: known[key]} if key in known else {}}
        found = self._pods.setdefault(key, PodObjects(self._name)).of(Moment(moment.position, alone))
        if not found:  # the pod is gone, or not there yet
            del self._pods[key]
        return found


def _claims(moment: Moment) -> Iterable[Claim]:
    return devices.state_of(moment).claims.values() if "devices" in moment.states else ()
