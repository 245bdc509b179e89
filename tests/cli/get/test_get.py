"""`get`: golden outputs for a hand-written history."""

import json

import pytest
import yaml

from chronolet.kernel.storage.members import Member
from chronolet_schemas import manifests, pod
from chronolet_schemas.keys import Shard, shard_for
from tests.cli.support.histories import SECOND, UID
from tests.cli.support.written_node import NODE, WrittenNode, manifest


def test_get_prints_the_results_of_a_jsonpath(node: WrittenNode) -> None:
    assert node.run("get", "pod", "web", "-o", "jsonpath={.status.podIP}").output == "10.0.0.7"
    assert node.run("get", "pods", "-A", "-o=jsonpath={.items[*].metadata.name}").output == "db web"
    each = 'jsonpath={range .items[*]}{.metadata.namespace}{"/"}{.metadata.name}{"\\n"}{end}'
    assert node.run("get", "pods", "-A", "-o", each).output == "data/db\ndefault/web\n"
    assert node.run("get", "actors", "-o", "jsonpath={.items[0].name}").output == "manifests"
    gone = node.run("get", "pod", "gone", "-o", "jsonpath={.metadata.name}")
    assert (gone.status, gone.output) == (1, "")
    outside = node.run("get", "pod/web", "-o", "jsonpath={.spec.containers[2].name}")
    assert (outside.status, outside.output) == (1, "")
    assert outside.errors == "error: -o jsonpath: array index out of bounds: index 2, length 2\n"


def test_get_pods_prints_kubectls_table(node: WrittenNode) -> None:
    result = node.run("get", "pods")
    assert (result.status, result.errors) == (0, "")
    assert result.output == (
        "NAME   READY   STATUS             RESTARTS        AGE\n"
        "web    1/2     CrashLoopBackOff   1 (2m10s ago)   3m20s\n"
    )


def test_get_pods_of_all_namespaces_wide_and_without_headers(node: WrittenNode) -> None:
    assert node.run("get", "po", "-A", "-o", "wide").output == (
        "NAMESPACE   NAME   READY   STATUS              RESTARTS        AGE     IP         NODE     QOS CLASS\n"
        "data        db     0/1     ContainerCreating   0               3m20s   <none>     node-1   BestEffort\n"
        "default     web    1/2     CrashLoopBackOff    1 (2m10s ago)   3m20s   10.0.0.7   node-1   Burstable\n"
    )
    assert node.run("get", "pod", "-n", "data", "--no-headers").output == "db   0/1   ContainerCreating   0   3m20s\n"


@pytest.mark.parametrize("words", [["pods", "web"], ["pod/web"], ["po/web"], ["pod", "web", "web"]])
def test_get_one_pod_by_name(node: WrittenNode, words: list[str]) -> None:
    assert node.run("get", *words, "-o", "name") == ("pod/web\n", "", 0)


def test_a_missing_object_is_an_error_and_the_others_are_printed(node: WrittenNode) -> None:
    result = node.run("get", "pods", "web", "nope", "-o", "name")
    assert result == ("pod/web\n", 'Error from server (NotFound): pods "nope" not found\n', 1)
    assert node.run("get", "pods", "-n", "empty") == ("", "No resources found in empty namespace.\n", 0)
    assert node.run("describe", "pod", "nope").errors == 'Error from server (NotFound): pods "nope" not found\n'
    assert node.run("logs", "nope").errors == 'Error from server (NotFound): pods "nope" not found\n'


def test_each_of_several_types_has_a_table(node: WrittenNode) -> None:
    node.keep_events()
    result = node.run("get", "pods,containers,devices,events", "--field-selector", "metadata.namespace=default")
    assert result.status == 2, "devices have no selector"
    both = node.run("get", "pods,events")
    assert (both.status, both.errors) == (0, "")
    table, events = both.output.split("\n\n")
    assert table == (
        "NAME      READY   STATUS             RESTARTS        AGE\n"
        "pod/web   1/2     CrashLoopBackOff   1 (2m10s ago)   3m20s"
    )
    assert events.splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    names = node.run("get", "po,ev", "-o", "name").output.splitlines()
    assert names[0] == "pod/web"
    assert [name.partition(".")[0] for name in names[1:]] == ["event/web"] * (len(names) - 1)
    assert len(names) > 1
    whole = json.loads(node.run("get", "pods,actors", "-o", "json").output)
    assert [item.get("kind") for item in whole["items"]][:2] == ["Pod", "manifests"]


def test_names_apply_to_each_of_several_types(node: WrittenNode) -> None:
    result = node.run("get", "pods,containers", "web", "-o", "name")
    assert result == ("pod/web\n", 'Error from server (NotFound): containers "web" not found\n', 1)
    result = node.run("get", "pod/web", "container/side", "-o", "name")
    assert result == ("pod/web\ncontainer/web/side\n", "", 0)
    comma = node.run("get", "pod/web,events")
    assert comma == ("", 'Error from server (NotFound): pods "web,events" not found\n', 1), "as in kubectl"
    assert node.run("get", "pods,events", "-n", "none").errors == "No resources found in none namespace.\n"


def test_the_namespace_may_precede_the_subcommand(node: WrittenNode) -> None:
    assert node.run("-n", "data", "get", "pods", "-o", "name").output == "pod/db\n"
    assert node.run("--namespace=data", "get", "pods", "-n", "default", "-o", "name").output == "pod/web\n"
    assert node.run("-n", "data", "describe", "pod", "db").output.startswith("Name:")
    assert node.run("-n", "data", "get", "actors", "-o", "name").status == 0


def test_json_and_yaml_are_objects_of_the_api(node: WrittenNode) -> None:
    whole = json.loads(node.run("get", "pods", "-A", "-o", "json").output)
    assert (whole["apiVersion"], whole["kind"]) == ("v1", "List")
    assert [item["metadata"]["name"] for item in whole["items"]] == ["db", "web"]
    one = yaml.safe_load(node.run("get", "pod", "web", "-o", "yaml").output)
    assert one == json.loads(node.run("get", "pod", "web", "-o", "json").output)
    assert (one["kind"], one["metadata"]["uid"], one["spec"]["nodeName"]) == ("Pod", UID, NODE)
    assert one["status"]["phase"] == "Running"
    assert one["status"]["podIP"] == "10.0.0.7"
    app = one["status"]["containerStatuses"][0]
    assert app["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert app["lastState"]["terminated"]["exitCode"] == 3
    assert app["restartCount"] == 1


def test_get_containers_prints_a_table(node: WrittenNode) -> None:
    assert node.run("get", "containers", "-o", "wide").output == (
        "NAME   POD   STATE              RESTARTS   AGE      TYPE   IMAGE       ID\n"
        "app    web   CrashLoopBackOff   1          <none>   app    busybox:1   a1a1a1a1a1a1\n"
        "side   web   Running            0          3m19s    app    busybox:1   5e5e5e5e5e5e\n"
    )
    assert node.run("get", "container", "side", "-o", "name").output == "container/web/side\n"


def test_a_pod_with_a_termination_request_is_terminating(node: WrittenNode) -> None:
    deadline = node.now + 30 * SECOND
    ends = pod.TerminationRequested(
        pod="default/web", uid=UID, reason="Deleted", grace_period_seconds=30, deadline=deadline
    )
    node.write("pod/default/web", ends)
    assert node.run("get", "pods", "--no-headers").output.split()[2] == "Terminating"
    described = node.run("describe", "pod/web").output
    assert "Status:           Terminating (lasts 0s)\nTermination Grace Period:  30s\n" in described


def test_get_actors_prints_owner_lag_and_waiting_commands(node: WrittenNode) -> None:
    store, mail = node.store, Shard("manifests")
    store.renew("p1", "{}", 10_000)
    store.publish("p1", Member(instance="i", kinds=("manifests",), host="machine"))
    store.drain("p1", drains=True)
    for epoch in (1, 2):
        store.acquire(mail, "", "p0", 1)
        store.release(mail, f"{epoch}:p0", b"")
    store.acquire(mail, "", "p1", 1)
    store.acquire(Shard("pleg"), "", "p0", 1)
    store.send(mail, "manifests.DeletePods@1", "manifests/node", "r1", b"")
    applied = manifests.PodApplied(pod="default/web", uid=UID, source="apply", digest="d", manifest=manifest())
    node.write("manifests/node", applied)
    rows = [line.split() for line in node.run("get", "actors").output.splitlines()]
    columns = "NAME OWNER HOST EPOCH VERSION LAG WAITING ENTITIES AGE MOVES SNAPSHOT"
    assert rows[0] == columns.split()
    assert rows[1][:8] == ["manifests", "p1", "(draining)", "machine", "3", "0", "0", "1"]
    assert rows[1][8:] == ["1", "0s", "2", "<none>"]
    by_name = {row[0]: row for row in rows}
    web = str(shard_for("pod", 4, "default/web"))
    mine = [entry for entry in node.server.log if entry.type.startswith("manifests.Pod")]
    assert sum(int(by_name[f"pod/{index}"][5]) for index in range(4)) == len(mine) > 0
    assert int(by_name[web][5]) > 0
    assert by_name["pleg"][1:7] == ["p0", "(dead)", "<none>", "1", "0", "0"], "no entry of the log is for it"
    assert sum(int(by_name[f"pod/{index}"][7]) for index in range(4)) == 2
    assert node.run("get", "actor", "pod/2", "-o", "name").output == "actor/pod/2\n"
    assert len(json.loads(node.run("get", "actors", "pod", "-o", "json").output)["items"]) == 4
