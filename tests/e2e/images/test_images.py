"""Images from a real registry: how they are pulled, what is reported when a pull fails, and that other pods are not
affected.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet_schemas import manifests
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.registry import PASSWORD, USER, PrivateRegistry, private_registry
from tests.support.redis.server import PrivateRedis

AUTH = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.fixture(scope="module")
def registry(docker_engine: PrivateDocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateRegistry]:
    """A registry without a password."""
    with private_registry(docker_engine, tmp_path_factory.mktemp("registry") / "r") as found:
        yield found


@pytest.fixture(scope="module")
def private(docker_engine: PrivateDocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateRegistry]:
    """A registry with a password."""
    with private_registry(docker_engine, tmp_path_factory.mktemp("locked") / "r", private=True) as found:
        yield found


def pod_of(name: str, image: str, policy: str = "IfNotPresent", **spec: Any) -> dict[str, Any]:
    return pod(name, shell("app", image=image, imagePullPolicy=policy), **spec)


def secret(registry: PrivateRegistry, name: str, auth: str = AUTH) -> dict[str, Any]:
    config = json.dumps({"auths": {registry.address: {"auth": auth}}})
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(config.encode()).decode()},
    }


def pull_error(node: Node, name: str, reason: str = "ErrImagePull") -> str:
    """Wait until the pod's image fails with `reason`; return the error message."""
    return node.journal.wait_for_event(pods.ImageFailed, pod=f"default/{name}", reason=reason).message


def ready(node: Node, name: str) -> pods.ImageReady:
    return node.journal.wait_for_event(pods.ImageReady, pod=f"default/{name}")


def image_id(node: Node, name: str) -> str:
    status = node.journal.status(f"default/{name}")
    assert status is not None
    return status.container_statuses[0].image_id


# -- pulls -------------------------------------------------------------------------------------------------------------


def test_a_pulled_image_is_reported_with_size_and_digest(node: Node, registry: PrivateRegistry) -> None:
    image = registry.push()
    node.write("public.yaml", pod_of("public", image.tag))
    node.wait_until_running("public")
    came = ready(node, "public")
    assert (came.pulled, came.digest, came.size_bytes > 1_000_000) == (True, image.digest, True)
    assert image_id(node, "public") == f"docker-pullable://{image.digest}"
    events = node.kube_events("public")
    assert ("Pulling", f'Pulling image "{image.tag}"') in events
    (pulled,) = [message for reason, message in events if reason == "Pulled"]
    assert pulled.startswith(f'Successfully pulled image "{image.tag}" in ')
    assert pulled.endswith(f" including waiting). Image size: {came.size_bytes} bytes.")


def test_an_image_is_pulled_by_digest_with_or_without_a_tag(node: Node, registry: PrivateRegistry) -> None:
    image = registry.push(tag="moved")
    registry.push(tag="moved")
    by_both = f"{image.tag}@{image.digest.partition('@')[2]}"
    node.write("digest.yaml", pod_of("by-digest", image.digest), pod_of("by-both", by_both, "Always"))
    node.wait_until_running("by-digest", "by-both")
    for name in ("by-digest", "by-both"):
        assert image_id(node, name) == f"docker-pullable://{image.digest}"


def test_the_pull_policy_decides_about_a_moved_tag(node: Node, registry: PrivateRegistry) -> None:
    before = registry.push(tag="latest")
    node.write("first.yaml", pod_of("first", before.tag))
    node.wait_until_running("first")
    first = image_id(node, "first")
    after = registry.push(tag="latest")
    node.write("second.yaml", pod_of("kept", before.tag))
    node.wait_until_running("kept")
    node.write("third.yaml", pod_of("followed", before.tag, "Always"))  # this moves the tag in the local engine, too
    node.wait_until_running("followed")
    assert image_id(node, "kept") == first == f"docker-pullable://{before.digest}"
    assert image_id(node, "followed") == f"docker-pullable://{after.digest}"
    present = f'Container image "{before.tag}" already present on machine and can be accessed by the pod'
    assert ("Pulled", present) in node.kube_events("kept")


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_missing_tag_is_reported_with_the_registrys_error(node: Node, registry: PrivateRegistry) -> None:
    reference = f"{registry.address}/team/app:absent"
    node.write("absent.yaml", pod_of("absent", reference))
    message = pull_error(node, "absent")
    assert "manifest unknown" in message
    node.wait_for_status("absent", "ImagePullBackOff")
    events = node.kube_events("absent")
    assert ("Failed", f'Failed to pull image "{reference}": {message}') in events
    assert ("Failed", "Error: ErrImagePull") in events
    assert ("BackOff", f'Back-off pulling image "{reference}"') in events
    waits = f'Back-off pulling image "{reference}": ErrImagePull: {message}'
    node.journal.wait_for(waits, lambda: waits in node.chronolet("describe", "pod", "absent").out)


def test_an_image_of_policy_never_is_not_pulled(node: Node, registry: PrivateRegistry) -> None:
    image = registry.push("team/never")
    node.write("never.yaml", pod_of("never", image.tag, "Never"))
    assert pull_error(node, "never", "ErrImageNeverPull").endswith("is not present with pull policy of Never")
    node.wait_for_status("never", "ErrImageNeverPull")


def test_an_invalid_image_name_is_reported(node: Node) -> None:
    node.write("unnamed.yaml", pod_of("unnamed", "<your-private-image>"))
    message = pull_error(node, "unnamed", "InvalidImageName")
    assert message.endswith('couldn\'t parse image name "<your-private-image>": invalid reference format')
    assert ("InspectFailed", message) in node.kube_events("unnamed")


def test_a_pull_is_retried_when_the_registry_is_back(node: Node, docker_engine: PrivateDocker, tmp_path: Path) -> None:
    with private_registry(docker_engine, tmp_path / "r") as registry:
        image = registry.push()
        registry.kill9()
        node.write("down.yaml", pod_of("down", image.tag))
        assert "connection refused" in pull_error(node, "down")
        node.wait_for_status("down", "ImagePullBackOff")
        node.write("meanwhile.yaml", pod("meanwhile"))
        node.wait_until_running("meanwhile")

        def is_in_back_off() -> bool:
            one = node.journal.pods["default/down"].container("app")
            return one is not None and one.phase == "image_back_off"

        def failures() -> list[int]:
            return [one.failures for one in node.journal.events(pods.ImageFailed, pod="default/down")]

        with node.paused_when("a back-off of the image", is_in_back_off):
            before = failures()
            registry.start()
        node.wait_until_running("down")
        assert failures() == before == [number + 1 for number in range(len(before))]
        assert ready(node, "down").digest == image.digest


# -- registries with a password ----------------------------------------------------------------------------------------


def test_a_pull_secret_gives_access_and_stays_hidden(
    own_node: Node, redis_server: PrivateRedis, private: PrivateRegistry
) -> None:
    image = private.push("team/private")
    own_node.start()
    own_node.journal.wait_for_event(manifests.FolderRead)
    file = own_node.write_unwatched(
        "private.yaml",
        secret(private, "regcred"),
        pod_of("private", image.tag, imagePullSecrets=[{"name": "regcred"}]),
    )
    own_node.write(
        "from-file.yaml",
        secret(private, "of-file"),
        pod_of("from-file", image.tag, "Always", imagePullSecrets=[{"name": "of-file"}]),
    )
    assert own_node.chronolet("apply", "-f", file).out == "secret/regcred created\npod/private created\n"
    own_node.wait_until_running("private", "from-file")
    assert own_node.chronolet("apply", "-f", file).out == "secret/regcred unchanged\npod/private unchanged\n"
    assert own_node.chronolet("describe", "pod", "private").status == 0
    # The agent is paused, so that no file is removed while it is being read.
    with own_node.paused_when("a pause between two writes", lambda: True):
        check_hidden(own_node, redis_server, secret(private, "x")["data"][".dockerconfigjson"])


def check_hidden(node: Node, server: PrivateRedis, data: str) -> None:
    """Check that the password, the encoded credentials and `data` occur in no file, except in the folders `secrets` and
    `manifests` and in private.yaml, and in no running container's inspect.
    """
    for hidden in (PASSWORD, AUTH, data):
        for path in (*server.folder.rglob("*"),):
            if path.is_file() and path.parent.name not in ("secrets", "manifests") and path.name != "private.yaml":
                assert hidden.encode() not in path.read_bytes(), path
        for one in node.docker.containers():
            assert hidden not in json.dumps(node.docker.inspect_container(one["Id"]))


def test_a_secret_added_or_corrected_later_is_used_at_the_next_attempt(node: Node, private: PrivateRegistry) -> None:
    image = private.push("team/later")
    wrong = secret(private, "wrong", base64.b64encode(f"{USER}:no".encode()).decode())
    assert node.chronolet("apply", "-f", node.write_unwatched("wrong.yaml", wrong)).out == "secret/wrong created\n"
    for name, name_of_secret in (("later", "late"), ("mended", "wrong")):
        node.write(f"{name}.yaml", pod_of(name, image.tag, imagePullSecrets=[{"name": name_of_secret}]))
    assert "no basic auth credentials" in pull_error(node, "later")
    missing = "Unable to retrieve some image pull secrets (late); attempting to pull the image may not succeed."
    assert ("FailedToRetrieveImagePullSecret", missing) in node.kube_events("later")
    assert "unauthorized" in pull_error(node, "mended")
    late, right = (node.write_unwatched(f"right-{name}.yaml", secret(private, name)) for name in ("late", "wrong"))
    assert node.chronolet("apply", "-f", late).out == "secret/late created\n"
    assert node.chronolet("apply", "-f", right).out == "secret/wrong configured\n"
    node.wait_until_running("later", "mended")
    assert node.chronolet("delete", "secret", "late").out == "secret/late deleted\n"
    assert 'secrets "late" not found' in node.chronolet("delete", "-f", late).err
    assert node.all_run("later")


def test_dockers_own_configuration_gives_access_to_a_registry(
    own_node: Node, private: PrivateRegistry, tmp_path: Path
) -> None:
    image = private.push("team/own")
    (tmp_path / "config.json").write_text(json.dumps({"auths": {private.address: {"auth": AUTH}}}))
    own_node.environ["DOCKER_CONFIG"] = str(tmp_path)
    own_node.write("own.yaml", pod_of("own", image.tag))
    own_node.start()
    own_node.wait_until_running("own")
    assert ready(own_node, "own").digest == image.digest


def test_a_secret_of_another_type_is_refused(node: Node) -> None:
    opaque = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "o"}, "stringData": {"password": "hunter2"}}
    result = node.chronolet("apply", "-f", node.write_unwatched("opaque.yaml", opaque))
    assert result.status == 1
    assert "opaque.yaml: type: 'Opaque' is not supported yet, expected kubernetes.io/dockerconfigjson" in result.err
    assert "hunter2" not in result.err


def test_a_secret_cannot_be_applied_with_another_root_dir(node: Node, private: PrivateRegistry, tmp_path: Path) -> None:
    file = node.write_unwatched("elsewhere.yaml", secret(private, "elsewhere"))
    result = node.chronolet("apply", "-f", file, "--root-dir", str(tmp_path))
    assert result.status == 1
    assert f"Secret default/elsewhere cannot be stored in {tmp_path}/secrets: No such file" in result.err
