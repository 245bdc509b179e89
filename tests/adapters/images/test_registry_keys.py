"""Credentials for registries: from Secrets first, then from Docker's configuration and its credential helpers."""

import base64
import json
from pathlib import Path

import pytest

from chronolet.adapters.images.registry_keys import HostKeyring, docker_folder
from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.ports.pods.secrets import Secret
from chronolet.rules.names.image_names import parsed
from chronolet.rules.names.registry_keys import Credential
from tests.support.scratch import HANG_SECONDS

IMAGE = parsed("reg.example/team/app:1")


@pytest.fixture
def secrets(tmp_path: Path) -> SecretFiles:
    made = SecretFiles(tmp_path, "n")
    made.prepare()
    return made


def keep(secrets: SecretFiles, name: str, content: str) -> str:
    data = {".dockerconfigjson": content.encode()}
    one = Secret(namespace="d", name=name, type="kubernetes.io/dockerconfigjson", data=data)
    return secrets.keep(one, "apply")


def auths(user: str, key: str = "reg.example") -> dict[str, object]:
    return {"auths": {key: {"auth": base64.b64encode(f"{user}:p".encode()).decode()}}}


def configured(folder: Path, **content: object) -> None:
    (folder / "config.json").write_text(json.dumps(content))


def helper(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / f"docker-credential-{name}"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def user(name: str) -> Credential:
    return Credential(username=name, password="p")


def test_secrets_come_before_the_configuration_of_docker(secrets: SecretFiles, tmp_path: Path) -> None:
    configured(tmp_path, **auths("own"))
    one, two = keep(secrets, "one", json.dumps(auths("one"))), keep(secrets, "two", json.dumps(auths("two", "other")))
    broken = keep(secrets, "broken", "{")
    found = HostKeyring(tmp_path, secrets).find(IMAGE, (two, one, "0" * 32, broken))
    assert (found.credentials, found.lost, found.remarks) == ((user("one"), user("own")), ("0" * 32, broken), ())


def test_without_a_configuration_there_are_no_credentials(secrets: SecretFiles, tmp_path: Path) -> None:
    found = HostKeyring(tmp_path / "none", secrets).find(IMAGE, ())
    assert (found.credentials, found.lost, found.remarks) == ((), (), ())


@pytest.mark.parametrize("content", [b"{", b'{"auths": {"reg.example": {"auth": "s3cret"}}}', None])
def test_an_unreadable_configuration_is_reported(secrets: SecretFiles, tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        (tmp_path / "config.json").mkdir()
    else:
        (tmp_path / "config.json").write_bytes(content)
    found = HostKeyring(tmp_path, secrets).find(IMAGE, ())
    assert found.credentials == ()
    assert found.remarks[0].startswith(f"{tmp_path}/config.json: ")
    assert "s3cret" not in found.remarks[0]


def test_the_helper_of_the_host_is_called(
    secrets: SecretFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper(
        tmp_path,
        "x",
        f'[ "$1" = get ] && cat > {tmp_path}/asked && echo \'{{"Username":"h","Secret":"p"}}\'',
        monkeypatch,
    )
    configured(tmp_path, credHelpers={"reg.example": "x"}, credsStore="absent", **auths("own"))
    found = HostKeyring(tmp_path, secrets, HANG_SECONDS).find(IMAGE, ())
    assert (found.credentials, found.remarks) == ((user("h"), user("own")), ())
    assert (tmp_path / "asked").read_text() == "reg.example"


def test_without_a_helper_for_the_host_the_store_is_called_and_may_return_a_token(
    secrets: SecretFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper(tmp_path, "x", 'cat > /dev/null; echo \'{"Username":"<token>","Secret":"t"}\'', monkeypatch)
    configured(tmp_path, credsStore="x", auths={"https://index.docker.io/v1/": {}})
    found = HostKeyring(tmp_path, secrets, HANG_SECONDS).find(parsed("busybox"), ())
    assert found.credentials == (Credential(identity_token="t"),)


@pytest.mark.parametrize(
    ("script", "seconds", "remark"),
    [
        ("echo credentials not found in native keychain; exit 1", HANG_SECONDS, ""),
        ("echo s3cret; echo s3cret >&2; exit 3", HANG_SECONDS, "docker-credential-x: ended with status 3"),
        ("echo s3cret", HANG_SECONDS, "docker-credential-x: its answer cannot be read"),
        ("exec sleep 3600", 0.5, "docker-credential-x: no answer within 0.5 s"),
    ],
)
def test_if_the_helper_has_no_credentials_others_are_used(
    secrets: SecretFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, script: str, seconds: float, remark: str
) -> None:
    helper(tmp_path, "x", script, monkeypatch)
    configured(tmp_path, credsStore="x", **auths("own"))
    found = HostKeyring(tmp_path, secrets, seconds).find(IMAGE, ())
    assert found.credentials == (user("own"),)
    assert found.remarks == ((remark,) if remark else ())


def test_a_missing_helper_is_reported(secrets: SecretFiles, tmp_path: Path) -> None:
    configured(tmp_path, credsStore="absent-anywhere")
    (remark,) = HostKeyring(tmp_path, secrets).find(IMAGE, ()).remarks
    assert remark.startswith("docker-credential-absent-anywhere: cannot be run: ")


def test_the_configuration_folder_is_that_of_docker() -> None:
    assert docker_folder({"DOCKER_CONFIG": "/x"}) == Path("/x")
    assert docker_folder({}) == Path.home() / ".docker"
