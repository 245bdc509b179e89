"""`events` and `get events`: kubectl's columns and flags, for the agent's stream and for the whole log."""

import json

import pytest

from chronolet_schemas.kube_events import Recorded, SinksChanged
from tests.cli.support.histories import SECOND, recorded
from tests.cli.support.written_node import NODE, NOON, WrittenNode, columns

HEAD = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
BACK_OFF = "Back-off restarting failed container app"


@pytest.fixture
def kept(node: WrittenNode) -> WrittenNode:
    """A node with KubeEvents: web has started twice and is backing off; the node has started; db has a Warning."""
    node.write("pleg/node", Recorded(object_kind="Node", name=NODE, severity="Normal", reason="Starting", message="up"))
    other = Recorded(
        object_kind="Pod", namespace="data", name="db", severity="Warning", reason="Failed", message="a\x1b[2Jb"
    )
    node.write("pod/data/db", other)
    node.keep_events()
    return node


def test_events_are_ordered_by_last_occurrence(kept: WrittenNode) -> None:
    result = kept.run("events")
    assert result.status == 0
    assert columns(result.output) == [
        HEAD,
        ["2m20s (x2 over 3m20s)", "Normal", "Started", "Pod/web", "Started container app"],
        ["2m10s", "Warning", "BackOff", "Pod/web", BACK_OFF],
        ["0s", "Normal", "Starting", f"Node/{NODE}", "up"],
    ]
    assert result.errors == "Kept since 2027-01-15T08:00:00Z; for older events: chronolet events --all\n"


def test_get_events_prints_the_columns_of_kubectl_get(kept: WrittenNode) -> None:
    result = kept.run("get", "events", "--field-selector", "involvedObject.name=web,type!=Warning")
    assert columns(result.output) == [HEAD, ["2m20s", "Normal", "Started", "pod/web", "Started container app"]]
    wide = columns(kept.run("get", "events", "-A", "-o", "wide", "--field-selector", "reason=Started").output)
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
    assert kept.run("get", "events", wide[1][10], "-o", "name").output == f"event/{wide[1][10]}\n"
    assert kept.run("get", "events", "web.1").errors == 'Error from server (NotFound): events "web.1" not found\n'
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
def test_flags_select_events(kept: WrittenNode, arguments: list[str], reasons: list[str]) -> None:
    for command in (["events"], ["get", "events"]):
        result = kept.run(*command, "-o", "json", *arguments)
        assert [event["reason"] for event in json.loads(result.output)["items"]] == reasons


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--for", "web"], "--for: found 'web', expected pod/NAME or node/NAME."),
        (["--types", "Bad"], "--types: found 'Bad', expected Normal or Warning."),
        (["--since", "-1m"], "--since: found '-1m', expected a duration above zero such as 10s or 1m30s."),
    ],
)
def test_invalid_selections_are_usage_errors(kept: WrittenNode, arguments: list[str], error: str) -> None:
    for command in (["events"], ["get", "events"]):
        result = kept.run(*command, *arguments)
        assert (result.status, result.errors) == (
            2,
            f"error: {error} See `chronolet {' '.join(command[:1])} --help`.\n",
        )
    result = kept.run("get", "pods", "--types", "Normal")
    assert (result.status, result.errors.partition(". See")[0]) == (
        2,
        "error: found --for, --types, --since or --all with pods, expected events",
    )


def test_control_characters_in_messages_are_escaped(kept: WrittenNode) -> None:
    assert "a\\x1b[2Jb" in kept.run("events", "-n", "data").output


def test_an_event_as_json_has_all_fields_that_tools_read(kept: WrittenNode) -> None:
    result = kept.run("events", "-o", "json", "--for", "pod/web", "--types", "Normal")
    (event,) = json.loads(result.output)["items"]
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


def test_all_includes_events_dropped_by_the_spam_filter(node: WrittenNode) -> None:
    node.write("pod/default/web", *(recorded("Unhealthy", f"probe {number}", "Warning") for number in range(40)))
    node.keep_events()
    chosen = ["events", "--types", "Warning", "--no-headers"]
    assert len(node.run(*chosen).output.splitlines()) == 11  # nine, the combined rest, and the back-off
    everything = node.run(*chosen, "--all")
    assert len(everything.output.splitlines()) == 41
    assert everything.errors == ""
    assert len(node.run("get", *chosen).output.splitlines()) == 11
    assert len(node.run("get", *chosen, "--all").output.splitlines()) == 41


def test_watch_continues_with_new_events(kept: WrittenNode) -> None:
    for command in (["events"], ["get", "events"]):
        result = kept.run(*command, "-w", "-A")
        assert result.status == 130  # at the end of the stream
        assert len(result.output.splitlines()) == 5
        assert len(kept.run(*command, "-w", "--for", "pod/web", "--types", "Warning").output.splitlines()) == 2
    assert kept.run("events", "-w", "-o", "name").output.startswith("event/web.")
    assert kept.run("events", "-w", "-o", "yaml").output.count("\n---\n") == 3


def test_a_node_without_events_has_no_output(node: WrittenNode) -> None:
    result = node.run("events")
    assert (result.status, result.output, result.errors) == (0, "", "No events found in default namespace.\n")
    assert node.run("events", "-A").errors == "No events found.\n"
    assert node.run("get", "events").errors == "No resources found in default namespace.\n"


@pytest.mark.parametrize("words", [["events"], ["get", "events"], ["get", "pods,events"]])
def test_a_note_names_the_sinks_if_redis_is_not_one_of_them(kept: WrittenNode, words: list[str]) -> None:
    kept.kept.entries.clear()
    kept.write("kube_events/node", SinksChanged(sinks=("log", "webhook")))
    result = kept.run(*words)
    assert result.status == 0
    assert result.errors.splitlines()[0] == (
        f"note: KubeEvents of node {NODE} are delivered to the node agent's own log output (its standard output, or "
        "its service's journal), a webhook, and not kept in Redis (--event-sinks): chronolet events --all reads them "
        "from the node's event log"
    )
    assert "note" not in kept.run(*words, "--all").errors
    kept.write("kube_events/node", SinksChanged(sinks=("log", "redis")))
    assert "note" not in kept.run(*words).errors
