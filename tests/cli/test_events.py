"""`events` and `get events`: kubectl's columns and flags, over what the agent keeps and over the whole log."""

import json

import pytest

from chronolet_schemas.kube_events import Recorded, SinksChanged
from tests.cli.histories import SECOND, told
from tests.cli.written import NODE, NOON, WrittenNode, columns

HEAD = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
BACK_OFF = "Back-off restarting failed container app"


@pytest.fixture
def kept(node: WrittenNode) -> WrittenNode:
    """web has started twice and is backing off; the node has started; another namespace has a Warning."""
    node.write("pleg/node", Recorded(object_kind="Node", name=NODE, severity="Normal", reason="Starting", message="up"))
    other = Recorded(
        object_kind="Pod", namespace="data", name="db", severity="Warning", reason="Failed", message="a\x1b[2Jb"
    )
    node.write("pod/data/db", other)
    node.keep_events()
    return node


def test_events_in_the_order_of_their_last_times(kept: WrittenNode) -> None:
    said = kept.run("events")
    assert said.status == 0
    assert columns(said.out) == [
        HEAD,
        ["2m20s (x2 over 3m20s)", "Normal", "Started", "Pod/web", "Started container app"],
        ["2m10s", "Warning", "BackOff", "Pod/web", BACK_OFF],
        ["0s", "Normal", "Starting", f"Node/{NODE}", "up"],
    ]
    assert said.err == "Kept since 2027-01-15T08:00:00Z; for older events: chronolet events --all\n"


def test_get_events_has_the_columns_of_get(kept: WrittenNode) -> None:
    said = kept.run("get", "events", "--field-selector", "involvedObject.name=web,type!=Warning")
    assert columns(said.out) == [HEAD, ["2m20s", "Normal", "Started", "pod/web", "Started container app"]]
    wide = columns(kept.run("get", "events", "-A", "-o", "wide", "--field-selector", "reason=Started").out)
    assert wide[0] == [
        *("NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT", "SOURCE", "MESSAGE"),
        *("FIRST SEEN", "COUNT", "NAME"),
    ]
    assert wide[1][:7] == [
        "default",
        "2m20s",
        "Normal",
        "Started",
        "pod/web",
        "spec.containers{app}",
        f"chronolet, {NODE}",
    ]
    assert wide[1][7:10] == ["Started container app", "3m20s", "2"]
    assert kept.run("get", "events", wide[1][10], "-o", "name").out == f"event/{wide[1][10]}\n"
    assert kept.run("get", "events", "web.1").err == 'Error from server (NotFound): events "web.1" not found\n'
    assert kept.run("get", "pods", "--field-selector", "reason=Started").status == 2


@pytest.mark.parametrize(
    ("arguments", "reasons"),
    [
        (["--for", "pod/web"], ["Started", "BackOff"]),
        (["--for", "pod/other"], []),
        (["--for", f"node/{NODE}", "-n", "data"], ["Starting"]),
        (["-n", "data"], ["Failed"]),
        (["-A", "--types", "Warning"], ["BackOff", "Failed"]),
        (["--types=normal,warning", "--since", "135s"], ["BackOff", "Starting"]),
    ],
)
def test_what_is_chosen(kept: WrittenNode, arguments: list[str], reasons: list[str]) -> None:
    for command in (["events"], ["get", "events"]):
        said = kept.run(*command, "-o", "json", *arguments)
        assert [event["reason"] for event in json.loads(said.out)["items"]] == reasons


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--for", "web"], "--for: found 'web', expected pod/NAME or node/NAME."),
        (["--types", "Bad"], "--types: found 'Bad', expected Normal or Warning."),
        (["--since", "-1m"], "--since: found '-1m', expected a duration above zero such as 10s or 1m30s."),
    ],
)
def test_what_cannot_be_chosen(kept: WrittenNode, arguments: list[str], error: str) -> None:
    for command in (["events"], ["get", "events"]):
        said = kept.run(*command, *arguments)
        assert (said.status, said.err) == (2, f"error: {error} See `chronolet {' '.join(command[:1])} --help`.\n")
    said = kept.run("get", "pods", "--types", "Normal")
    assert (said.status, said.err.partition(". See")[0]) == (
        2,
        "error: found --for, --types, --since or --all with pods, expected events",
    )


def test_control_characters_do_not_reach_the_terminal(kept: WrittenNode) -> None:
    assert "a\\x1b[2Jb" in kept.run("events", "-n", "data").out


def test_an_event_object_has_all_that_tools_read(kept: WrittenNode) -> None:
    said = kept.run("events", "-o", "json", "--for", "pod/web", "--types", "Normal")
    (event,) = json.loads(said.out)["items"]
    position = event["metadata"]["resourceVersion"]
    assert event["involvedObject"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": "5c0ffee5",
        "apiVersion": "v1",
        "fieldPath": "spec.containers{app}",
    }
    assert event["metadata"]["annotations"] == {"chronolet/position": position}
    assert int(position.partition("-")[0]) == NOON + 60 * SECOND
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z")
    assert event["series"] == {"count": 2, "lastObservedTime": "2027-01-15T08:01:00.000000Z"}
    assert event["source"] == {"component": "chronolet", "host": NODE}
    assert (event["reportingComponent"], event["reportingInstance"]) == ("chronolet", NODE)


def test_all_shows_what_was_kept_back(node: WrittenNode) -> None:
    node.write("pod/default/web", *(told("Unhealthy", f"probe {number}", "Warning") for number in range(40)))
    node.keep_events()
    chosen = ["events", "--types", "Warning", "--no-headers"]
    assert len(node.run(*chosen).out.splitlines()) == 11  # nine, those combined, and the back-off
    everything = node.run(*chosen, "--all")
    assert len(everything.out.splitlines()) == 41
    assert everything.err == ""
    assert len(node.run("get", *chosen).out.splitlines()) == 11
    assert len(node.run("get", *chosen, "--all").out.splitlines()) == 41


def test_watching_goes_on_with_what_comes(kept: WrittenNode) -> None:
    for command in (["events"], ["get", "events"]):
        said = kept.run(*command, "-w", "-A")
        assert said.status == 130  # the stream has no more
        assert len(said.out.splitlines()) == 5
        assert len(kept.run(*command, "-w", "--for", "pod/web", "--types", "Warning").out.splitlines()) == 2
    assert kept.run("events", "-w", "-o", "name").out.startswith("event/web.")
    assert kept.run("events", "-w", "-o", "yaml").out.count("\n---\n") == 3


def test_without_events(node: WrittenNode) -> None:
    said = node.run("events")
    assert (said.status, said.out, said.err) == (0, "", "No events found in default namespace.\n")
    assert node.run("events", "-A").err == "No events found.\n"
    assert node.run("get", "events").err == "No resources found in default namespace.\n"


@pytest.mark.parametrize("words", [["events"], ["get", "events"], ["get", "pods,events"]])
def test_where_events_are_if_redis_is_not_to_have_them(kept: WrittenNode, words: list[str]) -> None:
    kept.kept.entries.clear()
    kept.write("kube_events/node", SinksChanged(sinks=("log", "webhook")))
    said = kept.run(*words)
    assert said.status == 0
    assert said.err.splitlines()[0] == (
        f"note: KubeEvents of node {NODE} are delivered to the node agent's own log output (its standard output, or "
        "its service's journal), a webhook, and not kept in Redis (--event-sinks): chronolet events --all reads them "
        "from the node's event log"
    )
    assert "note" not in kept.run(*words, "--all").err
    kept.write("kube_events/node", SinksChanged(sinks=("log", "redis")))
    assert "note" not in kept.run(*words).err
