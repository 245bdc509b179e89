"""Security contexts of container and pod, seen from inside the container."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.extra.pods import AppliedPods, add_container, add_pod, script

pytestmark = pytest.mark.docker

AT = [{"name": "v", "mountPath": "/v"}]
_SYS_RESOURCE = 24
_NET_ADMIN = 12


def status_of(*names: str) -> str:
    """Return a script that prints these lines of its process's status."""
    return f"grep -E '^({'|'.join(names)}):' /proc/self/status | tr -d '\\t'"


RIGHTS = add_pod("rights", volumes=[{"name": "v", "emptyDir": {}}])


def has(name: str, lines: str, **context: Any) -> tuple[str, str]:
    """Add a container with this security context to the pod RIGHTS, which has no security context of its own."""
    return add_container(RIGHTS, script(name, lines, volumeMounts=AT, securityContext=context))


def pod_has(name: str, lines: str, pod: Any, **context: Any) -> tuple[str, str]:
    """Add a pod with the security context `pod`, and with one container that has the security context `context`."""
    return add_container(add_pod(name, securityContext=pod), script("app", lines, securityContext=context))


USER = has("user", "id -u; id -g", runAsUser=1000, runAsGroup=2000)
POD_USER = add_pod(
    "pod-user",
    script("app", "id -u; id -g; id -G"),
    script("other", "id -u; id -g", securityContext={"runAsUser": 1001}),
    securityContext={
        "runAsUser": 1000,
        "runAsGroup": 2000,
        "supplementalGroups": [3000, 3001],
        "seLinuxOptions": {"user": "system_u", "role": "system_r", "type": "spc_t", "level": "s0"},
    },
)
GROUP_OF_FILES = add_pod(
    "group-of-files",
    script("app", "id -G; stat -c '%g %A' /v; touch /v/new && stat -c '%u %g' /v/new", volumeMounts=AT),
    securityContext={"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 4000, "fsGroupChangePolicy": "OnRootMismatch"},
    volumes=[{"name": "v", "emptyDir": {}}],
)
NON_ROOT = has("non-root", "id -u", runAsNonRoot=True, runAsUser=1000)
ROOT_BY_IMAGE = has("root-by-image", "true", runAsNonRoot=True)
ROOT_BY_USER = pod_has("root-by-user", "true", {"runAsNonRoot": True}, runAsUser=0)
READ_ONLY_ROOT = has(
    "read-only-root", "touch /new && echo written; touch /v/kept && echo kept", readOnlyRootFilesystem=True
)
NO_CAPABILITIES = has("no-capabilities", status_of("CapEff", "CapBnd"), capabilities={"drop": ["ALL"]})
ONE_CAPABILITY = has("one-capability", status_of("CapEff"), capabilities={"drop": ["ALL"], "add": ["NET_ADMIN"]})
NO_MORE_RIGHTS = has("no-more-rights", status_of("NoNewPrivs"), allowPrivilegeEscalation=False)
MORE_RIGHTS = has("more-rights", status_of("NoNewPrivs"), allowPrivilegeEscalation=True)
UNCONFINED = has("unconfined", status_of("Seccomp"), seccompProfile={"type": "Unconfined"})
CONFINED = pod_has("confined", status_of("Seccomp"), {"seccompProfile": {"type": "RuntimeDefault"}})
NO_SECCOMP = has("without-seccomp", status_of("Seccomp"))
FORBIDS = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}],
}
PROFILE = has(
    "own-profile",
    "touch /tmp/file && echo touched; mkdir /tmp/folder",
    seccompProfile={"type": "Localhost", "localhostProfile": "profiles/forbids.json"},
)
NO_PROFILE = pod_has(
    "no-such-profile", "true", {"seccompProfile": {"type": "Localhost", "localhostProfile": "none.json"}}
)
SYSCTL = pod_has(
    "sysctl",
    "cat /proc/sys/net/ipv4/ip_local_port_range",
    {"sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "20000 30000"}]},
)
APP_ARMOR = has("app-armor", "true", appArmorProfile={"type": "RuntimeDefault"})
PRIVILEGED = has("privileged", status_of("Seccomp"), privileged=True)


def may_have_all_capabilities() -> bool:
    """Return whether this process may have CAP_SYS_RESOURCE. A machine without it cannot start a privileged container,
    which needs every capability.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    bounding = next(line for line in lines if line.startswith("CapBnd:"))
    return bool(int(bounding.split()[1], 16) >> _SYS_RESOURCE & 1)


def test_a_user_and_a_group(pods: AppliedPods) -> None:
    assert pods.output(*USER) == "1000\n2000\n"


def test_the_pods_user_and_a_containers_own(pods: AppliedPods) -> None:
    user, group, groups = pods.output(POD_USER).splitlines()
    assert (user, group, sorted(groups.split())) == ("1000", "2000", ["2000", "3000", "3001"])
    assert pods.output(POD_USER, "other") == "1001\n2000\n"


def test_the_group_of_a_volumes_files(pods: AppliedPods) -> None:
    groups, folder, file = pods.output(GROUP_OF_FILES).splitlines()
    assert "4000" in groups.split()
    assert folder == "4000 drwxrwsrwx"
    assert file == "1000 4000"


def test_a_user_that_is_not_root(pods: AppliedPods) -> None:
    assert pods.output(*NON_ROOT) == "1000\n"


def test_an_image_that_would_run_as_root(pods: AppliedPods) -> None:
    message = pods.waits("CreateContainerConfigError", *ROOT_BY_IMAGE)
    assert "container has runAsNonRoot and image will run as root" in message


def test_root_by_name_is_refused_by_run_as_non_root(pods: AppliedPods) -> None:
    message = pods.waits("CreateContainerConfigError", *ROOT_BY_USER)
    assert "container's runAsUser breaks non-root policy" in message


def test_a_read_only_root(pods: AppliedPods) -> None:
    assert pods.output(*READ_ONLY_ROOT).splitlines()[-1] == "kept"
    assert "Read-only file system" in pods.output(*READ_ONLY_ROOT)


def test_capabilities(pods: AppliedPods) -> None:
    nothing = "0" * 16
    assert pods.output(*NO_CAPABILITIES) == f"CapEff:{nothing}\nCapBnd:{nothing}\n"
    assert pods.output(*ONE_CAPABILITY) == f"CapEff:{1 << _NET_ADMIN:016x}\n"


def test_privilege_escalation(pods: AppliedPods) -> None:
    assert pods.output(*NO_MORE_RIGHTS) == "NoNewPrivs:1\n"
    assert pods.output(*MORE_RIGHTS) == "NoNewPrivs:0\n"


def test_a_seccomp_profile(pods: AppliedPods) -> None:
    assert pods.output(*UNCONFINED) == "Seccomp:0\n"
    assert pods.output(*CONFINED) == "Seccomp:2\n"
    # This is Docker's default filter, as under a kubelet with seccompDefault.
    assert pods.output(*NO_SECCOMP) == "Seccomp:2\n"


def test_a_seccomp_profile_of_the_node(pods: AppliedPods) -> None:
    """The profile is created after the pod: until then the container waits and is retried."""
    assert "none.json" in pods.waits("CreateContainerError", *NO_PROFILE)
    profile = pods.node.root / "seccomp" / "profiles" / "forbids.json"
    profile.parent.mkdir(parents=True)
    profile.write_text(json.dumps(FORBIDS))
    assert pods.output(*PROFILE) == "touched\nmkdir: can't create directory '/tmp/folder': Operation not permitted\n"


def test_a_profile_of_app_armor(pods: AppliedPods) -> None:
    enabled = Path("/sys/module/apparmor/parameters/enabled")
    if enabled.exists() and enabled.read_text().startswith("Y"):
        assert pods.output(*APP_ARMOR) == ""
    else:
        message = pods.waits("CreateContainerConfigError", *APP_ARMOR)
        assert message == "Cannot enforce AppArmor: AppArmor is not enabled on the host"


def test_a_kernel_parameter(pods: AppliedPods) -> None:
    assert pods.output(*SYSCTL).split() == ["20000", "30000"]


def test_a_privileged_container_starts_or_names_the_missing_capability(pods: AppliedPods) -> None:
    """A machine without CAP_SYS_RESOURCE cannot grant it to a container: Docker's message is shown."""
    if may_have_all_capabilities():
        assert pods.output(*PRIVILEGED) == "Seccomp:0\n"
    else:
        pods.waits("CrashLoopBackOff", *PRIVILEGED)
        ended = pods.container(*PRIVILEGED)["lastState"]["terminated"]
        assert "unable to apply caps" in ended["message"], ended
        assert ended["message"].endswith(
            "; a privileged container needs every capability, and this node cannot give CAP_SYS_RESOURCE"
        ), ended


def test_all_fields_have_their_effect_in_docker(pods: AppliedPods) -> None:
    for pod in (RIGHTS, POD_USER, CONFINED[0]):
        assert pods.differences(pod) == []
    assert pods.inspected(RIGHTS)["privileged"]["HostConfig"]["Privileged"] is True
