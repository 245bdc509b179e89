"""Each accepted manifest of the corpus is applied to one real node: its pod has the expected result, and honoured
fields have their effect in Docker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from docker.errors import NotFound

from chronolet.pod.status.status import plain_status
from chronolet.ports.runtime import labels
from tests.corpus import images
from tests.corpus.comparison import differences
from tests.corpus.docker_checks import PodView
from tests.corpus.expected import CONFIG_ERROR, EXPECTED, Accepted, matches
from tests.corpus.extra.pods import hooks, probes
from tests.corpus.manifests import batches, content, paths, rewritten
from tests.corpus.manifests import images as images_of
from tests.e2e.node import Node, running_node
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis

pytestmark = [pytest.mark.corpus, pytest.mark.docker]

ACCEPTED = {file: one for file, one in EXPECTED.items() if isinstance(one, Accepted)}
LABELS = ("--node-labels", "disktype=ssd,kubernetes.io/e2e-az-name=e2e-az1", "--node-affinity", "enforce")
"""Flags that set the node labels which manifests of the corpus require; the node rejects pods that do not match."""
SETTLES_WITHIN = 60
NEVER_MADE = ("PodInitializing", "CreateContainerError", "WaitingForDevices")
"""Waiting reasons of containers that have not been created."""


class AppliedPod(NamedTuple):
    """A manifest as it was applied, and its pod."""

    manifest: Mapping[str, Any]
    reported: frozenset[tuple[str, bool]]
    """The findings that `apply` reported: the path, and whether the finding blocks."""
    pod: Mapping[str, Any]
    docker: Mapping[str, Any]
    """Docker's inspect by container name; the sandbox is named POD."""
    hooks: Mapping[tuple[str, str], str]
    probes: Mapping[tuple[str, str], Any]


@pytest.fixture(scope="module")
def applied(docker_engine: PrivateDocker) -> Iterator[Mapping[str, AppliedPod]]:
    """Apply all accepted manifests to one node."""
    images.load(docker_engine.api())
    with private_redis() as server:
        # The agent runs in the engine's network, because probes connect to the pods' addresses.
        agent = running_node(docker_engine, server.url, "corpus", server.folder / "agent", in_network=True, more=LABELS)
        with agent as node:
            yield _applied(node)


@pytest.mark.parametrize("file", sorted(ACCEPTED))
def test_apply_reports_the_expected_findings(applied: Mapping[str, AppliedPod], file: str) -> None:
    expected = ACCEPTED[file]
    blocks, warns = {(path, True) for path in expected.blocks}, {(path, False) for path in expected.warns}
    assert applied[file].reported == blocks | warns


@pytest.mark.parametrize("file", sorted(ACCEPTED))
def test_containers_have_the_expected_outcome(applied: Mapping[str, AppliedPod], file: str) -> None:
    expected, one = ACCEPTED[file], applied[file]
    if expected.rejected:
        status = one.pod["status"]
        assert (status["phase"], status["reason"], list(_containers(one.pod))) == ("Failed", expected.rejected, [])
        return
    for status in _containers(one.pod):
        assert matches(status, expected.outcome_of(status["name"])), (status, expected.outcome_of(status["name"]))
        if expected.blocks:
            waiting = status["state"]["waiting"]
            assert waiting["reason"] == CONFIG_ERROR
            assert waiting["message"].startswith(tuple(f"{path}: " for path in expected.blocks)), waiting
    assert {each["name"] for each in _containers(one.pod)} == {each["name"] for each in _definitions(one.manifest)}


@pytest.mark.parametrize("file", sorted(ACCEPTED))
def test_honoured_fields_have_their_effect_in_docker(applied: Mapping[str, AppliedPod], file: str) -> None:
    expected, one = ACCEPTED[file], applied[file]
    if expected.blocks:
        assert set(one.docker) <= {"POD"}, "a blocked container was created"
        return
    reasons = {each["name"]: expected.outcome_of(each["name"]).reason for each in _definitions(one.manifest)}
    # A pod that waits for devices is not admitted and has no sandbox.
    sandbox = {"POD"} if "WaitingForDevices" not in reasons.values() else set()
    assert set(one.docker) == sandbox | {name for name, reason in reasons.items() if reason not in NEVER_MADE}
    if not sandbox:
        return
    assert differences(PodView(one.manifest, one.pod, one.docker, one.hooks, one.probes), expected.warns) == []


# -- applying ----------------------------------------------------------------------------------------------------------


def _applied(node: Node) -> dict[str, AppliedPod]:
    named, found = images_of(), paths()
    texts = {file: rewritten(found[file].read_text(), named[file]) for file in ACCEPTED}
    manifests = {file: content(text) for file, text in texts.items()}
    reported: dict[str, set[tuple[str, bool]]] = {file: set() for file in ACCEPTED}
    keys: dict[str, str] = {}
    for number, batch in enumerate(batches(manifests)):
        namespace = f"corpus-{number}"
        folder = node.root / namespace
        for file in batch:
            keys[file] = _key(manifests[file], namespace)
        for file, path, blocks in _apply(node, folder, namespace, {file: texts[file] for file in batch}):
            reported[file].add((path, blocks))
    pods: dict[str, Any] = {}

    def shown() -> bool:
        pods.update(_shown(node))
        return all(_is_settled(pods[keys[file]]["status"], file) for file in ACCEPTED)

    with suppress(TimeoutError):  # the tests report what has not settled
        node.journal.wait_for("all pods to settle", lambda: all(map(_settled(node, keys), ACCEPTED)), SETTLES_WITHIN)
        # Wait until `get` shows it as well: a crash-looping container may have restarted in the meantime.
        node.journal.wait_for("all pods to be shown as settled", shown, SETTLES_WITHIN)
    pods, docker = pods or _shown(node), _inspected(node)
    return {
        file: AppliedPod(manifests[file], frozenset(reported[file]), *_found(node, key, pods, docker))
        for file, key in keys.items()
    }


def _found(node: Node, key: str, pods: Mapping[str, Any], docker: Mapping[str, Any]) -> tuple[Any, ...]:
    namespace, _, name = key.partition("/")
    return pods[key], docker.get(key, {}), hooks(node, name, namespace), probes(node, name, namespace)


def _apply(node: Node, folder: Path, namespace: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str, bool]]:
    """Apply these manifests as one folder; yield the reported findings: file, path of the field, whether it blocks."""
    folder.mkdir()
    for file, text in texts.items():
        (folder / file).write_text(text)
    result = node.chronolet("apply", "-n", namespace, "-f", str(folder))
    assert (result.status, result.out.count(" created\n")) == (0, len(texts)), result
    for line in result.err.splitlines():
        place, path, *_ = line.removeprefix("warning: ").split(": ")
        yield Path(place).name, path, line.endswith("; it cannot start")


def _key(manifest: Mapping[str, Any], namespace: str) -> str:
    return f"{manifest['metadata'].get('namespace', namespace)}/{manifest['metadata']['name']}"


def _settled(node: Node, keys: Mapping[str, str]) -> Any:
    """Return a function that tells whether a file's pod has its expected state in the node's log."""

    def settled(file: str) -> bool:
        state = node.journal.pods.get(keys[file])
        return state is not None and bool(state.uid) and _is_settled(plain_status(state), file)

    return settled


def _is_settled(status: Mapping[str, Any], file: str) -> bool:
    if ACCEPTED[file].rejected:
        return status.get("reason") == ACCEPTED[file].rejected
    found = list(_containers({"status": status}))
    return bool(found) and all(matches(one, ACCEPTED[file].outcome_of(one["name"])) for one in found)


def _shown(node: Node) -> dict[str, Any]:
    items = msgspec.json.decode(node.chronolet("get", "pods", "-A", "-o", "json").out)["items"]
    return {f"{one['metadata']['namespace']}/{one['metadata']['name']}": one for one in items}


def _inspected(node: Node) -> dict[str, dict[str, Any]]:
    """Return Docker's inspect of all containers of the node: pod -> container -> the newest attempt."""
    while True:
        with suppress(NotFound):  # a container was replaced between list and inspect: list again
            return _inspected_once(node)


def _inspected_once(node: Node) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    everything = node.docker.containers(all=True, filters={"label": f"{labels.NODE}={node.name}"})
    for one in sorted(everything, key=lambda one: one["Created"]):
        written = one["Labels"]
        pod = f"{written[labels.POD_NAMESPACE]}/{written[labels.POD_NAME]}"
        found.setdefault(pod, {})[written[labels.CONTAINER_NAME]] = node.docker.inspect_container(one["Id"])
    return found


def _containers(pod: Mapping[str, Any]) -> Iterator[Any]:
    for field in ("initContainerStatuses", "containerStatuses"):
        yield from pod["status"].get(field, [])


def _definitions(manifest: Mapping[str, Any]) -> Iterator[Any]:
    for field in ("initContainers", "containers"):
        yield from manifest["spec"].get(field, [])
