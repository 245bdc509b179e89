"""Each manifest of the corpus that is not refused, applied to one real node: what it shows is what is expected, and
what is honoured is seen in Docker.
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
from tests.corpus.expected import CONFIG_ERROR, EXPECTED, Taken
from tests.corpus.looks import Look
from tests.corpus.manifests import batches, content, paths, rewritten
from tests.corpus.manifests import images as images_of
from tests.corpus.own import hooks, probes
from tests.corpus.seen import differences
from tests.corpus.standing import stands_as
from tests.e2e.node import Node, running_node
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis

pytestmark = [pytest.mark.corpus, pytest.mark.docker]

TAKEN = {file: one for file, one in EXPECTED.items() if isinstance(one, Taken)}
LABELS = ("--node-labels", "disktype=ssd,kubernetes.io/e2e-az-name=e2e-az1", "--node-affinity", "enforce")
"""Those that manifests of the corpus ask for; without them the node would reject these."""
SETTLES_WITHIN = 60
NEVER_MADE = ("PodInitializing", "CreateContainerError", "WaitingForDevices")
"""Why a container waits that Docker knows nothing of: its turn has not come, or it cannot be made."""


class One(NamedTuple):
    """A manifest as it was applied, and what became of it."""

    manifest: Mapping[str, Any]
    told: frozenset[tuple[str, bool]]
    """What `apply` said: path, and whether it cannot start."""
    pod: Mapping[str, Any]
    docker: Mapping[str, Any]
    """Docker's inspect by container name, the sandbox as POD."""
    hooks: Mapping[tuple[str, str], str]
    probes: Mapping[tuple[str, str], Any]


@pytest.fixture(scope="module")
def became(docker_engine: PrivateDocker) -> Iterator[Mapping[str, One]]:
    """All of them at once, so that they share the node as pods do."""
    images.load(docker_engine.api())
    with private_redis() as server:
        # Probes go to the pods' own addresses.
        agent = running_node(docker_engine, server.url, "corpus", server.folder / "agent", in_network=True, more=LABELS)
        with agent as node:
            yield _applied(node)


@pytest.mark.parametrize("file", sorted(TAKEN))
def test_what_apply_says(became: Mapping[str, One], file: str) -> None:
    expected = TAKEN[file]
    blocks, warns = {(path, True) for path in expected.blocks}, {(path, False) for path in expected.warns}
    assert became[file].told == blocks | warns


@pytest.mark.parametrize("file", sorted(TAKEN))
def test_what_becomes_of_it(became: Mapping[str, One], file: str) -> None:
    expected, one = TAKEN[file], became[file]
    if expected.rejected:
        status = one.pod["status"]
        assert (status["phase"], status["reason"], list(_containers(one.pod))) == ("Failed", expected.rejected, [])
        return
    for status in _containers(one.pod):
        assert stands_as(status, expected.end(status["name"])), (status, expected.end(status["name"]))
        if expected.blocks:
            waiting = status["state"]["waiting"]
            assert waiting["reason"] == CONFIG_ERROR
            assert waiting["message"].startswith(tuple(f"{path}: " for path in expected.blocks)), waiting
    assert {each["name"] for each in _containers(one.pod)} == {each["name"] for each in _definitions(one.manifest)}


@pytest.mark.parametrize("file", sorted(TAKEN))
def test_what_is_honoured_is_seen(became: Mapping[str, One], file: str) -> None:
    expected, one = TAKEN[file], became[file]
    if expected.blocks:
        assert set(one.docker) <= {"POD"}, "what is blocked was made nevertheless"
        return
    reasons = {each["name"]: expected.end(each["name"]).reason for each in _definitions(one.manifest)}
    # What waits for devices has not been let in: not even its sandbox is there.
    sandbox = {"POD"} if "WaitingForDevices" not in reasons.values() else set()
    assert set(one.docker) == sandbox | {name for name, reason in reasons.items() if reason not in NEVER_MADE}
    if not sandbox:
        return
    assert differences(Look(one.manifest, one.pod, one.docker, one.hooks, one.probes), expected.warns) == []


# -- applying ----------------------------------------------------------------------------------------------------------


def _applied(node: Node) -> dict[str, One]:
    named, found = images_of(), paths()
    texts = {file: rewritten(found[file].read_text(), named[file]) for file in TAKEN}
    manifests = {file: content(text) for file, text in texts.items()}
    told: dict[str, set[tuple[str, bool]]] = {file: set() for file in TAKEN}
    keys: dict[str, str] = {}
    for number, batch in enumerate(batches(manifests)):
        namespace = f"corpus-{number}"
        folder = node.root / namespace
        for file in batch:
            keys[file] = _key(manifests[file], namespace)
        for file, path, blocks in _apply(node, folder, namespace, {file: texts[file] for file in batch}):
            told[file].add((path, blocks))
    pods: dict[str, Any] = {}

    def shown() -> bool:
        pods.update(_shown(node))
        return all(_stands(pods[keys[file]]["status"], file) for file in TAKEN)

    with suppress(TimeoutError):  # then the test of whatever has not settled says how it stands
        node.journal.wait_for("all pods to settle", lambda: all(map(_settled(node, keys), TAKEN)), SETTLES_WITHIN)
        # Again: until a command has read the log, one that ends again and again may have begun once more.
        node.journal.wait_for("all pods to be shown so", shown, SETTLES_WITHIN)
    pods, docker = pods or _shown(node), _inspected(node)
    return {
        file: One(manifests[file], frozenset(told[file]), *_found(node, key, pods, docker))
        for file, key in keys.items()
    }


def _found(node: Node, key: str, pods: Mapping[str, Any], docker: Mapping[str, Any]) -> tuple[Any, ...]:
    namespace, _, name = key.partition("/")
    return pods[key], docker.get(key, {}), hooks(node, name, namespace), probes(node, name, namespace)


def _apply(node: Node, folder: Path, namespace: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str, bool]]:
    """Apply these as one folder. What is said of them: file, path of the field, whether it cannot start."""
    folder.mkdir()
    for file, text in texts.items():
        (folder / file).write_text(text)
    said = node.chronolet("apply", "-n", namespace, "-f", str(folder))
    assert (said.status, said.out.count(" created\n")) == (0, len(texts)), said
    for line in said.err.splitlines():
        place, path, *_ = line.removeprefix("warning: ").split(": ")
        yield Path(place).name, path, line.endswith("; it cannot start")


def _key(manifest: Mapping[str, Any], namespace: str) -> str:
    return f"{manifest['metadata'].get('namespace', namespace)}/{manifest['metadata']['name']}"


def _settled(node: Node, keys: Mapping[str, str]) -> Any:
    """Whether the pod of a file stands as expected, by the node's log."""

    def settled(file: str) -> bool:
        state = node.journal.pods.get(keys[file])
        return state is not None and bool(state.uid) and _stands(plain_status(state), file)

    return settled


def _stands(status: Mapping[str, Any], file: str) -> bool:
    if TAKEN[file].rejected:
        return status.get("reason") == TAKEN[file].rejected
    found = list(_containers({"status": status}))
    return bool(found) and all(stands_as(one, TAKEN[file].end(one["name"])) for one in found)


def _shown(node: Node) -> dict[str, Any]:
    items = msgspec.json.decode(node.chronolet("get", "pods", "-A", "-o", "json").out)["items"]
    return {f"{one['metadata']['namespace']}/{one['metadata']['name']}": one for one in items}


def _inspected(node: Node) -> dict[str, dict[str, Any]]:
    """Docker's inspect of everything of the node: pod -> container -> its newest attempt."""
    while True:
        with suppress(NotFound):  # a crash loop went on between the list and the inspect: what it made counts
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
