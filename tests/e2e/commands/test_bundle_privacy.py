"""A bundle of a real node has no secret value in it, and gives the same answers on a machine that has nothing else."""

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from chronolet.history.bundle.reader import opened
from chronolet_schemas import pod as pods
from chronolet_schemas import prober
from chronolet_schemas.envelope import Entry
from tests.cli.bundle.test_elsewhere import away
from tests.e2e.images.test_images import pod_of, secret
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.registry import PASSWORD, PrivateRegistry, private_registry

ENV, PLAIN, ARGUMENT, SCRIPT = "-hunter2=Env/47\"11@x,y'z=", "k9Zx+plain-0815", "-tok=args/22@22,x'=", "scr1pt-pw-4444"
ANNOTATION, HEADER, URL, TERMINATION = "ann0t-'55\"55-note=", "--hdr=66/66@probe", "url-7777-pass", "l4st-w0rds-8888"
IN_LOG = (ENV, PLAIN, ARGUMENT, SCRIPT, ANNOTATION, HEADER, URL, TERMINATION)
SECRETS = (*IN_LOG, PASSWORD)

PROBE = {"exec": {"command": ["/bin/sh", "-c", 'echo "login with $DB_PASSWORD refused"; exit 1']}, "periodSeconds": 1}
READINGS: tuple[tuple[str, ...], ...] = (
    ("get", "pods", "-A", "-o", "json"),
    ("get", "pods,containers,images,devices", "-o", "json"),
    ("get", "pods", "-o", "wide"),
    ("logs", "keeper-of-secrets", "-c", "app"),
)
OF_ALL_EVENTS: tuple[tuple[str, ...], ...] = (
    ("get", "events", "--all", "-o", "json"),
    ("get", "nodes", "-o", "json"),
    ("describe", "pods"),
    ("why", "keeper-of-secrets", "-c", "last"),
)
"""Commands that need the log from its beginning: for the KubeEvents, the age of the node, and where the log begins."""


@pytest.fixture(scope="module")
def private(docker_engine: PrivateDocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateRegistry]:
    """A registry with a password."""
    with private_registry(docker_engine, tmp_path_factory.mktemp("locked") / "r", private=True) as found:
        yield found


def with_secrets() -> dict[str, Any]:
    """A pod with a secret in every place where users put some."""
    script = f"trap 'exit 0' TERM; : redis-cli -a {SCRIPT} redis://u:{URL}@db/0; sleep 1000000 & wait"
    app = shell(
        "app",
        script,
        args=["--", "--token", ARGUMENT],
        env=[{"name": "DB_PASSWORD", "value": ENV}, {"name": "PLAIN", "value": PLAIN}],
        readinessProbe=PROBE,
        startupProbe={
            "httpGet": {"port": 81, "httpHeaders": [{"name": "X-Any", "value": HEADER}]},
            "periodSeconds": 1,
            "failureThreshold": 1_000,
        },
    )
    probed = shell("probed", env=[{"name": "DB_PASSWORD", "value": ENV}], readinessProbe=PROBE)
    last = shell(
        "last", f"echo bye {TERMINATION} $PLAIN > /dev/termination-log; exit 3", env=[{"name": "PLAIN", "value": PLAIN}]
    )
    made = pod("keeper-of-secrets", app, probed, last)
    made["metadata"]["annotations"] = {"acme.com/note": ANNOTATION, "kubectl.kubernetes.io/default-container": "app"}
    return made


def test_a_bundle_has_no_secret_and_all_answers(node: Node, private: PrivateRegistry, tmp_path: Path) -> None:
    regcred = secret(private, "regcred")
    image = private.push("team/bundled")
    node.write("private.yaml", regcred, pod_of("private", image.tag, imagePullSecrets=[{"name": "regcred"}]))
    node.wait_until_running("private")
    node.write("secrets.yaml", with_secrets())
    node.journal.wait_for_event(prober.ProbeFailed, pod="default/keeper-of-secrets", container="probed", consecutive=2)
    node.journal.wait_for_event(pods.ExitRead, pod="default/keeper-of-secrets", container="last")
    whole, window, other, kept = (tmp_path / name for name in ("whole", "window", "other", "kept"))
    with node.paused_when("a pause between two writes", lambda: True):
        position = json.loads(node.chronolet(*READINGS[0]).out)["metadata"]["resourceVersion"]
        applied = node.chronolet("log", "-o", "json", "--type", "manifests.PodApplied", "-n", "1").out
        check(node, "bundle", "save", str(whole))
        check(node, "bundle", "save", str(window), "--from", json.loads(applied)["position"])
        check(node, "bundle", "anonymise", str(whole), str(other))
        answers = {words: check(node, *words, "--at", position) for words in (*READINGS, *OF_ALL_EVENTS)}
        log = check(node, "log", "-o", "json")
        check(node, "bundle", "save", str(kept), "--keep", "*")
        verified = check(node, "replay", "--verify", "--to", position)
    assert [value for value in IN_LOG if json.dumps(value)[1:-1] not in log] == [], (
        "otherwise, this test could not fail"
    )

    for path in (whole, window, other):
        check_hidden(path, regcred["data"][".dockerconfigjson"], *SECRETS)
    check_hidden(other, "keeper-of-secrets", "team/bundled", private.address, node.name, "acme.com")

    check_answers(whole, position, answers)
    (answer,) = away(tmp_path, ["bundle", "open", str(kept), "replay", "--verify", "--to", position])
    assert answer.output == verified
    assert "all reproduced" in verified
    check_answers(window, position, {words: answers[words] for words in READINGS})
    (answer,) = away(tmp_path, ["bundle", "open", str(other), *READINGS[0], "--at", position])
    assert phases(answer.output) == phases(answers[READINGS[0]])


def check(node: Node, *words: str) -> str:
    """Run a command, check that it succeeds, and return its output."""
    result = node.chronolet(*words)
    assert result.status == 0, (words, result.err)
    return result.out


def phases(output: str) -> list[str]:
    found = sorted(one["status"]["phase"] for one in json.loads(output)["items"])
    assert len(found) == 2
    return found


def check_hidden(path: Path, *values: str) -> None:
    """Check that none of the values is in the file, in any form, compressed or not."""
    for content in contents(path):
        for form in forms(*values):
            assert form.encode() not in content, (path.name, form)


def check_answers(path: Path, position: str, answers: Mapping[tuple[str, ...], str]) -> None:
    """Check that a bundle gives these answers on another machine, apart from redacted values."""
    found = away(path.parent, *(["bundle", "open", str(path), *words, "--at", position] for words in answers))
    for (words, expected), one in zip(answers.items(), found, strict=True):
        assert one.status == 0, (words, one.errors)
        check_equal(expected, one.output, words)
    assert sum("<redacted-" in one.output for one in found) >= 2, "otherwise, nothing was compared"


def contents(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a bundle, those of each part when decompressed, and the data of each entry."""
    whole = path.read_bytes()
    yield whole
    bundle, offset = opened(path), len(b"chronolet bundle 1\n")
    for part in bundle.manifest.parts:
        yield zlib.decompress(whole[offset : offset + part.size_bytes])
        offset += part.size_bytes
    entries: list[Entry] = list(bundle.entries())
    assert len(entries) == bundle.manifest.count > 20
    yield b"".join(text.encode() for entry in entries for text in (*entry[1:6], str(entry.position)))


def forms(*values: str) -> Iterator[str]:
    """Yield each value as it is, in URLs, in JSON and in base64 at each place of a longer text."""
    for value in values:
        yield from {value, quote(value), quote(value, ""), json.dumps(value)[1:-1]}
        for skipped in range(3):
            digits = base64.b64encode(b"\0" * skipped + value.encode()).decode().rstrip("=")
            yield digits[(0, 2, 3)[skipped] : -1]


def check_equal(live: str, redacted: str, words: tuple[str, ...]) -> None:
    """Check that two outputs are equal, apart from redacted values."""
    expected, found = live.splitlines(), redacted.splitlines()
    assert len(expected) == len(found) > 0, words
    for before, after in zip(expected, found, strict=True):
        pattern = ".+".join(map(re.escape, re.split(r"<redacted-[0-9]+>", " ".join(after.split()))))
        assert re.fullmatch(pattern, " ".join(before.split())), (words, before, after)
