"""Pods as API objects: the page shows the current states, and only changed pods are encoded again."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from chronolet.devices.actor import NODE
from chronolet.devices.state import State as Devices
from chronolet.history.state import Moment
from chronolet.node.http.api_pods import PodObjects, api_pods
from chronolet.pod.state import State
from chronolet_schemas.envelope import Position
from tests.deciders.pod.life import running


def moment(number: int, states: dict[str, State], devices: Devices | None = None) -> Moment:
    found: dict[str, dict[str, Any]] = {"pod": states}
    return Moment(Position(1_000, number), found if devices is None else found | {"devices": {NODE: devices}})


def test_only_changed_pods_are_encoded_again() -> None:
    web, db = running().state, replace(running().state, uid="db")
    objects = PodObjects("n")
    first = moment(1, {"default/web": web, "default/db": db})
    before = objects.of(first)
    assert before == api_pods(first, "n")
    assert [one["metadata"]["uid"] for one in before] == ["db", web.uid]

    second = moment(2, {"default/web": replace(web, accepted_at=web.accepted_at + 60_000), "default/db": db})
    after = objects.of(second)
    assert after == api_pods(second, "n")
    assert after[0]["status"] is before[0]["status"], "it has not changed"
    assert after[1]["metadata"]["creationTimestamp"] != before[1]["metadata"]["creationTimestamp"]
    assert {one["metadata"]["resourceVersion"] for one in after} == {"1000-2"}
    assert {one["metadata"]["resourceVersion"] for one in before} == {"1000-1"}, "an old page does not change"


def test_a_changed_device_changes_every_pod_and_removed_pods_are_dropped() -> None:
    web, objects = running().state, PodObjects("n")
    (before,) = objects.of(moment(1, {"default/web": web}, Devices()))
    changed = moment(2, {"default/web": web}, Devices())
    (after,) = objects.of(changed)
    assert [after] == api_pods(changed, "n")
    assert after["status"] is not before["status"]
    assert objects.of(moment(3, {"default/web": State()})) == []
    (again,) = objects.of(moment(4, {"default/web": web}))
    assert again["status"] is not after["status"]
