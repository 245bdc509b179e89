"""300 randomly damaged manifests pass through the real reader and the real deciders: each gets a result."""

from __future__ import annotations

import copy
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from chronolet.adapters.manifest_files import read_documents
from chronolet.manifests.decider import DECIDER as MANIFESTS
from chronolet.pod import signals
from chronolet.pod.decider import DECIDER as POD
from chronolet_schemas import manifests
from tests.deciders.given import given
from tests.e2e.node import pod, shell

HANG = 300
"""Time limit for all manifests, in seconds; about five seconds are expected."""
SEEDS = 300
BAD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 2**70, 1e300, float("nan"), "", " ", "-", "0", "..", "/", "\0", "a" * 5000),
    *("$(A)" * 2000, "\u202e\ud7ff", "1e9999", "1Ei", [], {}, [[]], [None], {"": ""}, ["x"] * 3000, {"name": {}}),
)


def _probed() -> dict[str, Any]:
    """Return a pod that uses many fields."""
    app = shell(
        "app",
        env=[{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        ports=[{"name": "web", "containerPort": 80, "hostPort": 8080}],
        volumeMounts=[{"name": "v", "mountPath": "/v", "subPathExpr": "$(A)"}, {"name": "d", "mountPath": "/d"}],
        livenessProbe={"exec": {"command": ["test", "$(A)"]}, "periodSeconds": 1},
        readinessProbe={"httpGet": {"port": "web", "path": "/"}},
        startupProbe={"grpc": {"port": 9000}},
        lifecycle={"preStop": {"exec": {"command": ["true"]}}, "postStart": {"sleep": {"seconds": 1}}},
        resources={"limits": {"cpu": "100m", "memory": "64Mi"}, "requests": {"cpu": "50m"}},
        securityContext={"runAsUser": 1000, "capabilities": {"add": ["NET_ADMIN"]}},
    )
    fields = {"items": [{"path": "f", "fieldRef": {"fieldPath": "metadata.annotations"}}]}
    return pod(
        "all",
        app,
        initContainers=[shell("first", "true"), shell("side", restartPolicy="Always")],
        volumes=[{"name": "v", "emptyDir": {}}, {"name": "d", "downwardAPI": fields}],
        hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a"]}],
        dnsConfig={"options": [{"name": "ndots", "value": "2"}]},
        securityContext={"fsGroup": 1, "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]},
        tolerations=[{"operator": "Exists"}],
    )


def _seeds() -> list[dict[str, Any]]:
    examples = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
    written = [one for path in examples for one in yaml.safe_load_all(path.read_text())]
    return [*written, _probed(), {"apiVersion": "v1", "kind": "List", "items": [_probed(), pod("other")]}]


def _mutated(chance: random.Random) -> str | bytes:
    """Return a seed with one or two values changed, or with its text changed in one or two places."""
    document = copy.deepcopy(chance.choice(_seeds()))
    if chance.random() < 0.5:
        for _ in range(chance.randint(1, 2)):
            _mutate(document, chance)
        return yaml.safe_dump(document, allow_unicode=True)
    text = bytearray(yaml.safe_dump(document).encode())
    for _ in range(chance.randint(1, 2)):
        at = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                text[at] = chance.randrange(256)
            case 1:
                del text[at : at + chance.randint(1, 30)]
            case 2:
                text[at:at] = chance.choice(
                    (b"\n", b"  ", b"- ", b": ", b"{", b"&a ", b"*a ", b"<<: ", b"\xff", b"---\n")
                )
            case _:
                text[at:at] = text[at : at + chance.randint(1, 200)]
    return bytes(text)


def _mutate(document: Any, chance: random.Random) -> None:
    """Replace, duplicate, rename or remove a random value of the document."""
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = chance.choice(keys)
        if not isinstance(here[key], dict | list) or chance.random() < 0.2:
            break
        here = here[key]
    match chance.randrange(5):
        case 0:
            del here[key]
        case 1 if isinstance(here, list):
            here.append(copy.deepcopy(here[key]))
        case 2 if isinstance(here, dict):
            here[f"{key}x"] = here.pop(key)
        case _:
            here[key] = copy.deepcopy(chance.choice(BAD_VALUES))


@contextmanager
def _hang_limit() -> Iterator[None]:
    def hangs(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"still at work after {HANG} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(HANG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_every_damaged_manifest_gets_a_result() -> None:
    assert all(read_documents(yaml.safe_dump(seed), "s.yaml").pods for seed in _seeds())
    refused = accepted = 0
    with _hang_limit():
        for seed in range(SEEDS):
            content = _mutated(random.Random(seed))
            parsed = read_documents(content, "m.yaml")
            refused += bool(parsed.errors)
            assert not (parsed.errors and parsed.pods), seed
            assert all(error.message for error in parsed.errors), seed
            if not parsed.pods:
                continue
            accepted += 1
            scene = given(MANIFESTS).when(manifests.ApplyPods(request=f"r{seed}", pods=parsed.pods))
            applied = [event for event in scene.facts if isinstance(event, manifests.PodApplied)]
            assert len(applied) == len(parsed.pods), seed
            for one in applied:
                _check_life(one)
    assert refused > SEEDS // 10
    assert accepted > SEEDS // 10


def _check_life(applied: manifests.PodApplied) -> None:
    """Check that the pod's decider accepts the pod, its sandbox and its removal."""
    scene = given(POD).when(applied, at=1_000)
    if "sandbox" in scene.effects:
        intent = scene.effects["sandbox"].intent
        scene.when(signals.SandboxUp(subject="sandbox", intent=intent, id="s", ip="10.0.0.2", started_at=1_000))
    gone = manifests.PodWithdrawn(pod=applied.pod, uid=applied.uid, source=applied.source)
    scene.when(gone)
    assert scene.state is None or scene.state.termination is not None
