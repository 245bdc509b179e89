"""`chronolet history devices`: who held which device when, and each handover."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chronolet_schemas import devices
from chronolet_schemas.envelope import Event
from tests.cli.support.busy_node import DEVICES, GPU, MINUTE, busy, claim, device, freed
from tests.cli.support.histories import SECOND
from tests.cli.support.written_node import NOON, WrittenNode, columns


def tenures(node: WrittenNode, *words: str) -> list[dict[str, Any]]:
    result = node.run("history", "devices", "-o", "json", *words)
    assert (result.status, result.errors) == (0, ""), result
    found: list[dict[str, Any]] = json.loads(result.output)["tenures"]
    return found


def short(one: dict[str, Any]) -> tuple[Any, ...]:
    """Return device, pod, beginning and end in seconds, and how it ended."""
    until = (one["until"] - NOON) // SECOND if "until" in one else None
    return one["id"], one["pod"], (one["from"] - NOON) // SECOND, until, one.get("ended")


def written(*steps: Sequence[Event]) -> WrittenNode:
    """Return a node with devices a and b, to which these events of `devices` happen, a minute apart."""
    node = WrittenNode()
    node.write(
        DEVICES,
        devices.PluginRegistered(resource=GPU, generation=1, socket="/gpu.sock", registered_at=node.now),
        devices.DevicesListed(resource=GPU, generation=1, devices=(device("a"), device("b")), count=2),
    )
    for events in steps:
        node.now += MINUTE
        node.write(DEVICES, *events)
    node.now += MINUTE
    return node


def test_a_device_is_handed_over_from_one_pod_to_another() -> None:
    first, second = tenures(busy())
    assert short(first) == ("a", "web", 210, 270, "released by the pod")
    assert "before" not in first
    assert short(second) == ("a", "db", 280, None, None)
    before = {"namespace": "default", "pod": "web", "uid": "u-web", "container": "app", "until": NOON + 270 * SECOND}
    assert second["before"] == before


@pytest.mark.parametrize(
    ("reason", "ended"),
    [("Released", "released by the pod"), ("PodEnded", "the pod ended"), ("PodGone", "the pod was gone")],
)
def test_the_end_of_a_tenure_says_why(reason: Any, ended: str) -> None:
    end = devices.DevicesFreed(pod="default/web", uid="u", devices={"app": {GPU: ("a", "b")}}, reason=reason)
    node = written([*claim("u", "web", "a", "b")], [end])
    assert [short(one) for one in tenures(node)] == [("a", "web", 60, 120, ended), ("b", "web", 60, 120, ended)]


def test_a_refused_allocation_ends_at_once() -> None:
    refused = devices.DevicesRefused(
        pod="default/web", uid="u", container="app", resource=GPU, reason="AllocateFailed", message="plugin said no"
    )
    node = written(list(claim("u", "web", "a"))[:1], [refused])
    assert [short(one) for one in tenures(node)] == [("a", "web", 60, 120, "refused: plugin said no")]


def test_devices_that_an_init_container_passes_on_are_shared_for_a_while() -> None:
    about: dict[str, Any] = {"pod": "default/web", "uid": "u", "container": "setup"}
    setup = devices.DevicesChosen(**about, role="init", wants={GPU: 1}, at=NOON, resource=GPU, devices=("a",))
    node = written([setup], [*claim("u", "web", "a")])
    first, second = tenures(node)
    assert [first["container"], second["container"]] == ["setup", "app"]
    assert "until" not in second["before"]
    assert columns(node.run("history", "devices").output)[2][-1] == "default/web/setup, passed on"


def test_the_former_holder_of_a_shared_device_is_the_one_that_had_it_last() -> None:
    """Setup holds the device, app gets it too and gives it up first: db gets it while setup holds it, or after it."""
    about: dict[str, Any] = {"pod": "default/web", "uid": "u", "container": "setup"}
    setup = devices.DevicesChosen(**about, role="init", wants={GPU: 1}, at=NOON, resource=GPU, devices=("a",))
    refused = devices.DevicesRefused(
        pod="default/web", uid="u", container="app", resource=GPU, reason="AllocateFailed", message="no"
    )
    shared: list[Sequence[Event]] = [[setup], [*claim("u", "web", "a")][:1], [refused]]
    *_, again = tenures(written(*shared, [*claim("u", "web", "a")]))
    assert (again["container"], again["before"]["container"]) == ("app", "setup")
    assert "until" not in again["before"], "setup still holds it"
    end = devices.DevicesFreed(pod="default/web", uid="u", devices={"setup": {GPU: ("a",)}}, reason="Released")
    *_, last = tenures(written(*shared, [end], [*claim("v", "db", "a")]))
    assert (last["pod"], last["before"]["container"]) == ("db", "setup")
    assert last["before"]["until"] == NOON + 240 * SECOND


def test_a_tenure_that_began_before_the_time_has_its_real_beginning() -> None:
    node = busy()
    [one] = tenures(node, "--from", "-1m")
    assert (one["pod"], one["from"]) == ("db", NOON), "when it was given, as the claim says"
    assert [short(one)[:2] for one in tenures(node, "--to", f"@{(NOON + 220 * SECOND) // 1000}")] == [("a", "web")]


@pytest.mark.parametrize("name", ["a", GPU, f"{GPU}/a"])
def test_devices_are_selected_by_name(name: str) -> None:
    assert len(tenures(busy(), name)) == 2
    result = busy().run("history", "devices", "b")
    assert (result.status, result.errors) == (1, 'Error from server (NotFound): devices "b" not found\n')


def test_the_table_has_a_row_per_tenure() -> None:
    head, *rows = columns(busy().run("history", "devices").output)
    assert head == ["RESOURCE", "ID", "POD", "CONTAINER", "FROM", "UNTIL", "ENDED", "BEFORE"]
    web = [GPU, "a", "default/web", "app", "2027-01-15T08:03:30Z", "2027-01-15T08:04:30Z"]
    db = [GPU, "a", "default/db", "app", "2027-01-15T08:04:40Z", "<none>", "<none>"]
    assert rows == [[*web, "released by the pod", "<unknown>"], [*db, "default/web/app, free for 10s"]]
    assert len(columns(busy().run("history", "device", "--no-headers").output)) == 2


def test_without_devices_there_is_a_note() -> None:
    node = written([])
    result = node.run("history", "devices")
    assert (result.output, result.errors, result.status) == ("", "No devices in that time.\n", 0)


def test_a_device_freed_and_given_away_at_once_is_handed_over() -> None:
    node = written([*claim("u", "web", "a")], [freed("u", "web", "a"), *claim("v", "db", "a")])
    assert columns(node.run("history", "devices").output)[2][-1] == "default/web/app, free for 0s"
