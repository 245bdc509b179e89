"""Security contexts of pods and containers, the user that a container runs as, and the kubelet's refusal messages."""

from typing import Any

import pytest

from chronolet.rules import security
from chronolet.rules.security import ImageUser, Rights
from chronolet_schemas.podspec import Pod, Profile, SELinuxOptions, from_plain

WHERE = '(pod: "web_default(u-1)", container: app)'


def pod(context: dict[str, Any] | None = None, own: dict[str, Any] | None = None, **spec: Any) -> Pod:
    container = {"name": "app", **({"securityContext": own} if own is not None else {})}
    whole = {"securityContext": context} if context is not None else {}
    metadata = {"name": "web", "namespace": "default", "uid": "u-1"}
    return from_plain({"metadata": metadata, "spec": {"containers": [container], **whole, **spec}})


def rights(context: dict[str, Any] | None = None, own: dict[str, Any] | None = None) -> Rights:
    manifest = pod(context, own)
    return security.rights(manifest, manifest.spec.containers[0])


def test_defaults_apply_without_a_security_context() -> None:
    assert rights() == Rights()


def test_the_pods_context_applies_to_a_container_without_one() -> None:
    context = {
        "runAsUser": 0,
        "runAsGroup": 2,
        "runAsNonRoot": True,
        "supplementalGroups": [3, 4],
        "fsGroup": 5,
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "p"},
        "seLinuxOptions": {"level": "s0"},
    }
    assert rights(context) == Rights(
        user=0,
        group=2,
        non_root=True,
        groups=(3, 4, 5),
        seccomp=Profile(type="Unconfined"),
        app_armor=Profile(type="Localhost", localhost_profile="p"),
        se_linux=SELinuxOptions(level="s0"),
    )


def test_a_containers_own_context_takes_precedence() -> None:
    context = {"runAsUser": 1, "runAsGroup": 2, "runAsNonRoot": True, "seccompProfile": {"type": "Unconfined"}}
    own = {
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
        "privileged": True,
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "Unconfined"},
        "seLinuxOptions": {"type": "t"},
    }
    assert rights(context, own) == Rights(
        user=0,
        group=0,
        privileged=True,
        add=("NET_ADMIN",),
        drop=("ALL",),
        read_only_root=True,
        no_new_privileges=True,
        seccomp=Profile(type="RuntimeDefault"),
        app_armor=Profile(type="Unconfined"),
        se_linux=SELinuxOptions(type="t"),
    )
    assert not rights({}, {"allowPrivilegeEscalation": True}).no_new_privileges


@pytest.mark.parametrize(
    ("text", "user"),
    [
        ("", ImageUser(0)),
        ("0", ImageUser(0)),
        ("1000:1000", ImageUser(1000)),
        ("nobody", ImageUser(None, "nobody")),
        ("nobody:nogroup", ImageUser(None, "nobody")),
    ],
)
def test_the_user_of_an_image(text: str, user: ImageUser) -> None:
    assert security.image_user(text) == user


@pytest.mark.parametrize(
    ("context", "image", "refusal"),
    [
        (Rights(), ImageUser(0), ""),
        (Rights(non_root=True, user=0), ImageUser(5), f"container's runAsUser breaks non-root policy {WHERE}"),
        (Rights(non_root=True, user=7), ImageUser(0), ""),
        (Rights(non_root=True), ImageUser(0), f"container has runAsNonRoot and image will run as root {WHERE}"),
        (Rights(non_root=True), ImageUser(9), ""),
        (
            Rights(non_root=True),
            ImageUser(None, "web"),
            "container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root " + WHERE,
        ),
    ],
)
def test_run_as_non_root_refuses_root(context: Rights, image: ImageUser, refusal: str) -> None:
    assert security.breaks_non_root(context, image, pod(), "app") == refusal


@pytest.mark.parametrize(
    ("context", "image", "user"),
    [
        (Rights(), ImageUser(5), ""),
        (Rights(user=0), ImageUser(5), "0"),
        (Rights(user=1, group=0), ImageUser(5), "1:0"),
        (Rights(group=3), ImageUser(5), "5:3"),
        (Rights(group=3), ImageUser(None, "web"), "web:3"),
    ],
)
def test_the_user_passed_to_the_runtime(context: Rights, image: ImageUser, user: str) -> None:
    assert security.user_of(context, image) == user


@pytest.mark.parametrize(
    ("name", "spec", "refusal"),
    [
        ("net.ipv4.tcp_syncookies", {}, ""),
        ("net/ipv4/tcp_syncookies", {}, ""),
        ("kernel.shm_rmid_forced", {}, ""),
        ("kernel.msgmax", {}, 'forbidden sysctl: "kernel.msgmax" not allowlisted'),
        (
            "net.ipv4.tcp_rmem",
            {"hostNetwork": True},
            'forbidden sysctl: "net.ipv4.tcp_rmem" not allowed with host net enabled',
        ),
        (
            "kernel.shm_rmid_forced",
            {"hostIPC": True},
            'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host ipc enabled',
        ),
    ],
)
def test_kernel_parameters(name: str, spec: dict[str, Any], refusal: str) -> None:
    assert security.forbidden_sysctl(pod({"sysctls": [{"name": name, "value": "1"}]}, **spec)) == refusal


def test_no_kernel_parameters() -> None:
    assert security.forbidden_sysctl(pod()) == ""


def test_unsafe_kernel_parameters_may_be_allowed() -> None:
    def refusal(name: str, *allowed: str, **spec: Any) -> str:
        return security.forbidden_sysctl(pod({"sysctls": [{"name": name, "value": "1"}]}, **spec), allowed)

    assert refusal("kernel.msgmax", "kernel.msg*") == ""
    assert refusal("kernel/sem", "kernel.sem") == ""
    assert refusal("kernel.semx", "kernel.sem") == 'forbidden sysctl: "kernel.semx" not allowlisted'
    assert refusal("net.core.somaxconn", "net.*", hostNetwork=True).endswith("not allowed with host net enabled")
    assert refusal("kernel.msgmax", "kernel.msg*", hostIPC=True).endswith("not allowed with host ipc enabled")
    assert refusal("fs.mqueue.msg_max", "fs.mqueue.*", hostNetwork=True) == ""
    assert [security.sysctl_namespace(name) for name in ("vm.swappiness", "kernel.shm", "net.")] == ["", "ipc", "net"]
