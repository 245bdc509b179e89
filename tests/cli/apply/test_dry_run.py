"""`apply --dry-run`: the predicted result for each pod, and its exit status."""

import base64
import json

import msgspec

from chronolet_schemas import manifests
from tests.cli.support.histories import accepted
from tests.cli.support.written_node import WrittenNode


def manifest_plain(name: str, namespace: str) -> dict[str, object]:
    containers = [{"name": "app", "image": "busybox:1"}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def test_a_dry_run_of_a_pod_that_cannot_start_fails_unless_allowed(node: WrittenNode) -> None:
    blocked = (
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: new}\n"
        b"spec: {containers: [{name: a, image: b, envFrom: [{configMapRef: {name: c}}]}]}\n"
    )
    words = ("apply", "--dry-run", "-f", "-")
    result = node.run(*words, stdin=blocked)
    assert (result.status, result.output) == (1, "pod/new created (dry run)\n")
    warning, error = result.errors.splitlines()
    assert warning.startswith("warning: standard input: spec.containers[0].envFrom")
    assert error == (
        "error: pod default/new cannot start because of the fields named above (dry run; --allow-unrunnable accepts it)"
    )
    allowed = node.run(*words, "--allow-unrunnable", stdin=blocked)
    assert (allowed.status, allowed.errors) == (0, f"{warning}\n")


def test_the_output_of_get_can_be_applied_without_a_change(node: WrittenNode) -> None:
    for form in ("yaml", "json"):
        shown = node.run("get", "pod", "db", "-n", "data", "-o", form).output
        result = node.run("apply", "--dry-run", "-f", "-", stdin=shown.encode())
        assert result == ("pod/db unchanged (dry run)\n", "", 0)


def test_a_dry_run_lists_the_changes(node: WrittenNode) -> None:
    same = json.dumps({**manifest_plain("db", "data")})
    assert (
        node.run("apply", "-f", "-", "--dry-run=client", stdin=same.encode()).output == "pod/db unchanged (dry run)\n"
    )
    assert node.run("apply", "--dry-run", "-f", "-", stdin=same.encode()).output == "pod/db unchanged (dry run)\n"
    changed = same.replace("busybox:1", "busybox:9")
    assert node.run("apply", "--dry-run", "-f", "-", stdin=changed.encode()).output == (
        'pod/db configured (dry run)\n  spec.containers[app].image: "busybox:1" -> "busybox:9"\n'
    )
    other = same.replace('"db"', '"new"')
    before = list(node.server.log)
    assert node.run("apply", "--dry-run", "-f", "-", stdin=other.encode()).output == "pod/new created (dry run)\n"
    assert node.server.log == before


def test_a_dry_run_predicts_a_refusal(node: WrittenNode) -> None:
    event = msgspec.structs.replace(accepted("mine"), source="file:/m/mine.yaml")
    node.write("pod/default/mine", event)
    both = b"\n---\n".join(json.dumps(manifest_plain(name, "default")).encode() for name in ("mine", "new"))
    result = node.run("apply", "--dry-run", "-f", "-", stdin=both)
    assert (result.status, result.output) == (1, "pod/new created (dry run)\n")
    refusal = "default/mine is already defined by file:/m/mine.yaml; apply cannot define a pod of the same name"
    assert result.errors == f"error: {refusal}\n"


def test_a_dry_run_predicts_the_refusal_of_a_secret(node: WrittenNode) -> None:
    source = "file:/m/mine.yaml"
    node.write(
        "manifests/node", manifests.SecretApplied(secret="default/mine", type="Opaque", digest="d", source=source)
    )
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "mine"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(b'{"auths": {}}').decode()},
    }
    result = node.run("apply", "--dry-run", "-f", "-", stdin=json.dumps(secret).encode())
    assert (result.status, result.output) == (1, "")
    assert result.errors == (
        f"error: Secret default/mine is already defined by {source}; apply cannot define a Secret of the same name\n"
    )
