"""`get`: golden outputs of a history written by hand."""

import json

import msgspec
import pytest
import yaml

from chronolet.cli.printing.forms import spelled_out
from chronolet_schemas import manifests, pod
from chronolet_schemas.keys import Shard, shard_for
from tests.cli.histories import SECOND, UID, accepted
from tests.cli.written import NODE, WrittenNode, manifest


def test_get_prints_what_a_jsonpath_finds(node: WrittenNode) -> None:
    assert node.run("get", "pod", "web", "-o", "jsonpath={.status.podIP}").out == "10.0.0.7"
    assert node.run("get", "pods", "-A", "-o=jsonpath={.items[*].metadata.name}").out == "db web"
    each = 'jsonpath={range .items[*]}{.metadata.namespace}{"/"}{.metadata.name}{"\\n"}{end}'
    assert node.run("get", "pods", "-A", "-o", each).out == "data/db\ndefault/web\n"
    assert node.run("get", "actors", "-o", "jsonpath={.items[0].name}").out == "manifests"
    gone = node.run("get", "pod", "gone", "-o", "jsonpath={.metadata.name}")
    assert (gone.status, gone.out) == (1, "")
    outside = node.run("get", "pod/web", "-o", "jsonpath={.spec.containers[2].name}")
    assert (outside.status, outside.out) == (1, "")
    assert outside.err == "error: -o jsonpath: array index out of bounds: index 2, length 2\n"


def test_a_jsonpath_cannot_steer_a_terminal() -> None:
    assert spelled_out("a\x1b[2J\tb\r\n") == "a\\x1b[2J\tb\\r\n"


def test_get_pods_is_kubectls_table(node: WrittenNode) -> None:
    said = node.run("get", "pods")
    assert (said.status, said.err) == (0, "")
    assert said.out == (
        "NAME   READY   STATUS             RESTARTS        AGE\n"
        "web    1/2     CrashLoopBackOff   1 (2m10s ago)   3m20s\n"
    )


def test_get_pods_of_all_namespaces_wide_and_without_headers(node: WrittenNode) -> None:
    assert node.run("get", "po", "-A", "-o", "wide").out == (
        "NAMESPACE   NAME   READY   STATUS              RESTARTS        AGE     IP         NODE     QOS CLASS\n"
        "data        db     0/1     ContainerCreating   0               3m20s   <none>     node-1   BestEffort\n"
        "default     web    1/2     CrashLoopBackOff    1 (2m10s ago)   3m20s   10.0.0.7   node-1   Burstable\n"
    )
    assert node.run("get", "pod", "-n", "data", "--no-headers").out == "db   0/1   ContainerCreating   0   3m20s\n"


@pytest.mark.parametrize("words", [["pods", "web"], ["pod/web"], ["po/web"], ["pod", "web", "web"]])
def test_get_one_pod_by_name(node: WrittenNode, words: list[str]) -> None:
    assert node.run("get", *words, "-o", "name") == ("pod/web\n", "", 0)


def test_what_is_not_there_is_an_error_beside_what_is(node: WrittenNode) -> None:
    said = node.run("get", "pods", "web", "nope", "-o", "name")
    assert said == ("pod/web\n", 'Error from server (NotFound): pods "nope" not found\n', 1)
    assert node.run("get", "pods", "-n", "empty") == ("", "No resources found in empty namespace.\n", 0)
    assert node.run("describe", "pod", "nope").err == 'Error from server (NotFound): pods "nope" not found\n'
    assert node.run("logs", "nope").err == 'Error from server (NotFound): pods "nope" not found\n'


def test_several_types_have_a_table_each(node: WrittenNode) -> None:
    node.keep_events()
    said = node.run("get", "pods,containers,devices,events", "--field-selector", "metadata.namespace=default")
    assert said.status == 2, "no selector for devices"
    both = node.run("get", "pods,events")
    assert (both.status, both.err) == (0, "")
    table, events = both.out.split("\n\n")
    assert table == (
        "NAME      READY   STATUS             RESTARTS        AGE\n"
        "pod/web   1/2     CrashLoopBackOff   1 (2m10s ago)   3m20s"
    )
    assert events.splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    names = node.run("get", "po,ev", "-o", "name").out.splitlines()
    assert names[0] == "pod/web"
    assert [name.partition(".")[0] for name in names[1:]] == ["event/web"] * (len(names) - 1)
    assert len(names) > 1
    whole = json.loads(node.run("get", "pods,actors", "-o", "json").out)
    assert [item.get("kind") for item in whole["items"]][:2] == ["Pod", "manifests"]


def test_several_types_share_the_names(node: WrittenNode) -> None:
    said = node.run("get", "pods,containers", "web", "-o", "name")
    assert said == ("pod/web\n", 'Error from server (NotFound): containers "web" not found\n', 1)
    said = node.run("get", "pod/web", "container/side", "-o", "name")
    assert said == ("pod/web\ncontainer/web/side\n", "", 0)
    comma = node.run("get", "pod/web,events")
    assert comma == ("", 'Error from server (NotFound): pods "web,events" not found\n', 1), "as kubectl reads it"
    assert node.run("get", "pods,events", "-n", "none").err == "No resources found in none namespace.\n"


def test_the_namespace_may_stand_before_the_verb(node: WrittenNode) -> None:
    assert node.run("-n", "data", "get", "pods", "-o", "name").out == "pod/db\n"
    assert node.run("--namespace=data", "get", "pods", "-n", "default", "-o", "name").out == "pod/web\n"
    assert node.run("-n", "data", "describe", "pod", "db").out.startswith("Name:")
    assert node.run("-n", "data", "get", "actors", "-o", "name").status == 0


def test_json_and_yaml_are_the_apis_objects(node: WrittenNode) -> None:
    whole = json.loads(node.run("get", "pods", "-A", "-o", "json").out)
    assert (whole["apiVersion"], whole["kind"]) == ("v1", "List")
    assert [item["metadata"]["name"] for item in whole["items"]] == ["db", "web"]
    one = yaml.safe_load(node.run("get", "pod", "web", "-o", "yaml").out)
    assert one == json.loads(node.run("get", "pod", "web", "-o", "json").out)
    assert (one["kind"], one["metadata"]["uid"], one["spec"]["nodeName"]) == ("Pod", UID, NODE)
    assert one["status"]["phase"] == "Running"
    assert one["status"]["podIP"] == "10.0.0.7"
    app = one["status"]["containerStatuses"][0]
    assert app["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert app["lastState"]["terminated"]["exitCode"] == 3
    assert app["restartCount"] == 1


def test_get_containers(node: WrittenNode) -> None:
    assert node.run("get", "containers", "-o", "wide").out == (
        "NAME   POD   STATE              RESTARTS   AGE      TYPE   IMAGE       ID\n"
        "app    web   CrashLoopBackOff   1          <none>   app    busybox:1   a1a1a1a1a1a1\n"
        "side   web   Running            0          3m19s    app    busybox:1   5e5e5e5e5e5e\n"
    )
    assert node.run("get", "container", "side", "-o", "name").out == "container/web/side\n"


def test_a_pod_that_ends_is_terminating(node: WrittenNode) -> None:
    deadline = node.now + 30 * SECOND
    ends = pod.TerminationRequested(
        pod="default/web", uid=UID, reason="Deleted", grace_period_seconds=30, deadline=deadline
    )
    node.write("pod/default/web", ends)
    assert node.run("get", "pods", "--no-headers").out.split()[2] == "Terminating"
    described = node.run("describe", "pod/web").out
    assert "Status:           Terminating (lasts 0s)\nTermination Grace Period:  30s\n" in described


def test_get_actors_tells_owner_lag_and_what_waits(node: WrittenNode) -> None:
    store, mail = node.store, Shard("manifests")
    store.renew("p1", "{}", 10_000)
    store.acquire(mail, "", "p1", 1, proven_dead=False)
    store.acquire(Shard("pleg"), "", "p0", 1, proven_dead=False)
    store.send(mail, "manifests.DeletePods@1", "manifests/node", "r1", b"")
    wanted = manifests.PodApplied(pod="default/web", uid=UID, source="apply", digest="d", manifest=manifest())
    node.write("manifests/node", wanted)
    rows = [line.split() for line in node.run("get", "actors").out.splitlines()]
    assert rows[0] == ["NAME", "OWNER", "EPOCH", "VERSION", "LAG", "WAITING", "ENTITIES", "SNAPSHOT"]
    assert rows[1] == ["manifests", "p1", "1", "0", "0", "1", "1", "<none>"]
    by_name = {row[0]: row for row in rows}
    web = str(shard_for("pod", 4, "default/web"))
    mine = [entry for entry in node.server.log if entry.type.startswith("manifests.Pod")]
    assert sum(int(by_name[f"pod/{index}"][4]) for index in range(4)) == len(mine) > 0
    assert int(by_name[web][4]) > 0
    assert by_name["pleg"][4] == "0", "nothing in the log is for it"
    assert by_name["pleg"][1:4] == ["p0", "(dead)", "1"]
    assert sum(int(by_name[f"pod/{index}"][6]) for index in range(4)) == 2
    assert node.run("get", "actor", "pod/2", "-o", "name").out == "actor/pod/2\n"
    assert len(json.loads(node.run("get", "actors", "pod", "-o", "json").out)["items"]) == 4


def test_a_dry_run_of_a_pod_that_cannot_start_fails_unless_asked_not_to(node: WrittenNode) -> None:
    stuck = (
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: new}\n"
        b"spec: {containers: [{name: a, image: b, envFrom: [{configMapRef: {name: c}}]}]}\n"
    )
    words = ("apply", "--dry-run", "-f", "-")
    said = node.run(*words, stdin=stuck)
    assert (said.status, said.out) == (1, "pod/new created (dry run)\n")
    warning, error = said.err.splitlines()
    assert warning.startswith("warning: standard input: spec.containers[0].envFrom")
    assert error == (
        "error: pod default/new cannot start because of the fields named above (dry run; --allow-unrunnable accepts it)"
    )
    allowed = node.run(*words, "--allow-unrunnable", stdin=stuck)
    assert (allowed.status, allowed.err) == (0, f"{warning}\n")


def test_what_get_shows_can_be_applied_and_changes_nothing(node: WrittenNode) -> None:
    for form in ("yaml", "json"):
        shown = node.run("get", "pod", "db", "-n", "data", "-o", form).out
        said = node.run("apply", "--dry-run", "-f", "-", stdin=shown.encode())
        assert said == ("pod/db unchanged (dry run)\n", "", 0)


def test_dry_run_says_what_would_change(node: WrittenNode) -> None:
    same = json.dumps({**manifest_plain("db", "data")})
    assert node.run("apply", "-f", "-", "--dry-run=client", stdin=same.encode()).out == "pod/db unchanged (dry run)\n"
    assert node.run("apply", "--dry-run", "-f", "-", stdin=same.encode()).out == "pod/db unchanged (dry run)\n"
    changed = same.replace("busybox:1", "busybox:9")
    assert node.run("apply", "--dry-run", "-f", "-", stdin=changed.encode()).out == (
        'pod/db configured (dry run)\n  spec.containers[0].image: "busybox:1" -> "busybox:9"\n'
    )
    other = same.replace('"db"', '"new"')
    before = list(node.server.log)
    assert node.run("apply", "--dry-run", "-f", "-", stdin=other.encode()).out == "pod/new created (dry run)\n"
    assert node.server.log == before


def test_dry_run_says_what_would_be_refused(node: WrittenNode) -> None:
    event = msgspec.structs.replace(accepted("mine"), source="file:/m/mine.yaml")
    node.write("pod/default/mine", event)
    both = b"\n---\n".join(json.dumps(manifest_plain(name, "default")).encode() for name in ("mine", "new"))
    said = node.run("apply", "--dry-run", "-f", "-", stdin=both)
    assert (said.status, said.out) == (1, "pod/new created (dry run)\n")
    assert said.err == "error: pod default/mine is already managed by file:/m/mine.yaml (dry run)\n"


def manifest_plain(name: str, namespace: str) -> dict[str, object]:
    containers = [{"name": "app", "image": "busybox:1"}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def test_a_node_without_a_log_is_named() -> None:
    empty = WrittenNode()
    with empty.server.changed:
        empty.server.log.clear()
        empty.server.last = empty.server.last._replace(milliseconds=0, n=0)
    said = empty.run("get", "pods")
    assert said.status == 1
    assert said.err.startswith("error: node node-1 has no log at unix:///none: start its agent")
