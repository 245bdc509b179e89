"""Namespaces, names, privileges and downward API fields of a manifest, in a container on a real engine."""

import time
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.machine.host import LinuxHost
from chronolet.pod import signals
from tests.integration.effects.manifests import app, output, output_of, pod, ready, run, start, start_in
from tests.integration.effects.support import UID, World, cleanup, start_sandbox, stop_container
from tests.support.docker.engine import PrivateDocker
from tests.support.scratch import HANG_SECONDS, wait_until

# -- names ---------------------------------------------------------------------------------------------------------


def test_hostname_and_host_aliases(world: World) -> None:
    script = "hostname; grep -v '^#' /etc/hosts"
    aliases = [{"ip": "192.0.2.7", "hostnames": ["db", "db.test"]}]
    lines = output_of(world, pod(app(script), hostname="front", subdomain="shop", hostAliases=aliases))
    assert lines[0] == "front"
    assert "192.0.2.7\tdb\tdb.test" in lines
    own = next(line for line in lines if "front.shop" in line).split("\t")
    assert own[0].count(".") == 3
    assert own[1:] == ["front.shop.default.svc", "front"]


def test_a_full_hostname_and_one_that_is_too_long(world: World) -> None:
    assert output_of(world, pod(app("hostname"), subdomain="shop", setHostnameAsFQDN=True)) == ["web.shop.default.svc"]
    answer = world.run(start_sandbox(pod(hostname="h" * 60, subdomain="shop", setHostnameAsFQDN=True), attempt=1))
    assert isinstance(answer, signals.SandboxRefused)
    assert "is too long (64 characters is the max" in answer.message


def test_a_pods_own_resolver(world: World) -> None:
    config = {"nameservers": ["192.0.2.1"], "searches": ["x.test"], "options": [{"name": "ndots", "value": "3"}]}
    lines = output_of(world, pod(app("cat /etc/resolv.conf"), dnsPolicy="None", dnsConfig=config))
    assert lines == ["nameserver 192.0.2.1", "search x.test", "options ndots:3"]


def test_a_containers_own_hosts_file_is_kept(world: World) -> None:
    mounts = [{"name": "mine", "mountPath": "/etc/hosts"}]
    path = world.root / "hosts"
    path.write_text("192.0.2.9\tmine\n")
    volumes = [{"name": "mine", "hostPath": {"path": str(path)}}]
    assert output_of(world, pod(app("cat /etc/hosts", volumeMounts=mounts), volumes=volumes)) == ["192.0.2.9\tmine"]


# -- namespaces ----------------------------------------------------------------------------------------------------


def test_the_hosts_namespaces(world: World, docker_engine: PrivateDocker) -> None:
    script = "readlink /proc/self/ns/net; readlink /proc/self/ns/ipc; readlink /proc/self/ns/pid; cat /etc/hosts"
    port = {"containerPort": 80, "hostPort": 80}
    manifest = pod(app(script, ports=[port]), hostNetwork=True, hostPID=True, hostIPC=True)
    sandbox = world.sandbox(manifest)
    assert isinstance(sandbox, signals.SandboxUp), sandbox
    assert sandbox.ip == LinuxHost(world.root).address()
    answer = start_in(world, manifest, sandbox, "app")
    assert world.runtime.wait(answer.id, HANG_SECONDS)
    engine = Path(f"/proc/{docker_engine.pid}/ns")
    lines = output(world, answer.id)
    assert lines[:3] == [str((engine / name).readlink()) for name in ("net", "ipc", "pid")]
    assert lines[3] == "# Kubernetes-managed hosts file (host network)."


def test_shared_processes_are_visible_and_orphans_are_reaped(world: World) -> None:
    orphan = "(sh -c 'sleep 0.2' &); trap 'exit 0' TERM; echo ready; sleep 3600 & wait"
    manifest = pod(app(orphan), app(name="other"), shareProcessNamespace=True)
    sandbox = world.sandbox(manifest)
    first = start_in(world, manifest, sandbox, "app")
    second = start_in(world, manifest, sandbox, "other")
    ready(world, first.id)
    ready(world, second.id)
    namespaces = {tuple(run(world, one.id, "readlink", "/proc/self/ns/pid")) for one in (first, second)}
    assert len(namespaces) == 1
    wait_until(lambda: not any(" Z " in line for line in run(world, second.id, "ps")), "no zombies")
    assert any("sleep 3600" in line for line in run(world, second.id, "ps"))


def test_an_ephemeral_container_sees_its_targets_processes(world: World) -> None:
    debug = app("cat /proc/1/cmdline", name="debug", targetContainerName="app")
    manifest = pod(app(), ephemeralContainers=[debug])
    sandbox = world.sandbox(manifest)
    refused = start_in(world, manifest, sandbox, "debug")
    assert (refused.reason, refused.message) == ("CreateContainerConfigError", "unable to find target container app")
    target = start_in(world, manifest, sandbox, "app")
    ready(world, target.id)
    answer = start_in(world, manifest, sandbox, "debug")
    assert world.runtime.wait(answer.id, HANG_SECONDS)
    assert "echo ready" in output(world, answer.id)[0]


# -- privileges ----------------------------------------------------------------------------------------------------


def test_users_groups_and_capabilities(world: World) -> None:
    script = (
        "id -u; id -g; id -G; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; touch /x || echo ro"
    )
    own = {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False}
    context = {"runAsUser": 1234, "runAsGroup": 77, "supplementalGroups": [88], "fsGroup": 99}
    lines = output_of(world, pod(app(script, securityContext=own), securityContext=context))
    assert lines[:2] == ["1234", "77"]
    assert set(lines[2].split()) == {"77", "88", "99"}
    assert lines[3].split()[1] == "0" * 16
    assert lines[4].split()[1] == "1"
    assert "ro" in lines[5:]


def test_a_group_without_user_applies_to_the_images_user(world: World) -> None:
    assert output_of(world, pod(app("id -u; id -g", securityContext={"runAsGroup": 7}))) == ["0", "7"]


def test_an_image_that_runs_as_root_is_refused_with_run_as_non_root(world: World) -> None:
    answer = start(world, pod(app(securityContext={"runAsNonRoot": True})))
    assert (answer.reason, answer.id) == ("CreateContainerConfigError", "")
    assert answer.message == (
        f'container has runAsNonRoot and image will run as root (pod: "web_default({UID})", container: app)'
    )


def test_kernel_parameters(world: World) -> None:
    name = "net.ipv4.ip_unprivileged_port_start"
    context = {"sysctls": [{"name": name, "value": "7"}]}
    script = "cat /proc/sys/net/ipv4/ip_unprivileged_port_start"
    assert output_of(world, pod(app(script), securityContext=context)) == ["7"]
    world.run(cleanup())
    # Unsafe parameters are allowed here, because they are checked before the sandbox starts.
    unsafe = {"sysctls": [{"name": "kernel.msgmax", "value": "4096"}]}
    assert output_of(world, pod(app("cat /proc/sys/kernel/msgmax"), securityContext=unsafe)) == ["4096"]


def test_seccomp(world: World) -> None:
    folder = world.root / "seccomp"
    folder.mkdir()
    rule = '{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}'
    (folder / "no-mkdir.json").write_text(f'{{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{rule}]}}')
    script = "grep '^Seccomp:' /proc/self/status; mkdir /made || echo refused"

    profile = {"type": "Localhost", "localhostProfile": "no-mkdir.json"}
    lines = output_of(world, pod(app(script, securityContext={"seccompProfile": profile})))
    assert (lines[0], "refused" in lines) == ("Seccomp:\t2", True)


@pytest.mark.parametrize(("profile", "mode"), [("Unconfined", "0"), ("RuntimeDefault", "2")])
def test_seccomp_by_name(world: World, profile: str, mode: str) -> None:
    script = "grep '^Seccomp:' /proc/self/status"
    context = {"seccompProfile": {"type": profile}}
    assert output_of(world, pod(app(script), securityContext=context)) == [f"Seccomp:\t{mode}"]


def test_missing_profiles_are_refused(world: World) -> None:
    absent = {"seccompProfile": {"type": "Localhost", "localhostProfile": "absent.json"}}
    answer = start(world, pod(app(securityContext=absent)))
    assert answer.reason == "CreateContainerError"
    assert "cannot load seccomp profile 'absent.json'" in answer.message
    assert "No such file" in answer.message


def test_app_armor_is_requested_if_the_kernel_has_it(world: World) -> None:
    answer = start(world, pod(app(securityContext={"appArmorProfile": {"type": "RuntimeDefault"}})))
    if LinuxHost(world.root).enforces_app_armor():
        assert isinstance(answer, signals.ContainerUp)
    else:
        message = "Cannot enforce AppArmor: AppArmor is not enabled on the host"
        assert (answer.reason, answer.message) == ("CreateContainerConfigError", message)


def test_a_privileged_container_runs_or_reports_what_is_missing(world: World) -> None:
    missing = LinuxHost(world.root).missing_capabilities()
    answer = start(world, pod(app("grep CapEff /proc/self/status", securityContext={"privileged": True})))
    if missing:
        assert answer.reason == "RunContainerError"
        assert f"this node cannot give CAP_{missing[0]}" in answer.message
    else:
        assert world.runtime.wait(answer.id, HANG_SECONDS)
        assert int(output(world, answer.id)[0].split()[1], 16) & (1 << 24)


# -- streams, signals, fields --------------------------------------------------------------------------------------


def test_a_terminal_and_stdin(world: World, docker_engine: PrivateDocker) -> None:
    answer = start(world, pod(app("tty; echo ready; read line; echo got $line", tty=True, stdin=True, stdinOnce=True)))
    ready(world, answer.id)
    config = docker_engine.api().inspect_container(answer.id)["Config"]
    assert (config["Tty"], config["OpenStdin"], config["StdinOnce"]) == (True, True, True)
    assert output(world, answer.id)[0].startswith("/dev/pts/")


def test_a_containers_own_stop_signal(world: World) -> None:
    script = "trap 'exit 9' USR1; trap '' TERM; echo ready; while :; do sleep 1 & wait $!; done"
    answer = start(world, pod(app(script, lifecycle={"stopSignal": "SIGUSR1"}), os={"name": "linux"}))
    ready(world, answer.id)
    ended = world.run(stop_container(answer.id, grace=3600, deadline=time.time_ns() // 1_000_000 + 3_600_000))
    assert ended.exit_code == 9


def test_downward_api_fields(world: World) -> None:
    def of(name: str, path: str) -> dict[str, Any]:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    env = [
        of("NAME", "metadata.name"),
        of("TIER", "metadata.labels['tier']"),
        of("IP", "status.podIP"),
        of("HOST", "status.hostIP"),
        of("NODE", "spec.nodeName"),
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "ALL", "value": "$(NAME)/$(TIER)/$(NODE)"},
    ]
    script = 'echo "$ALL"; echo "$IP"; hostname -i; echo "$HOST"; echo "$CPU"; echo "$0"'
    container = app(script, env=env, args=["$(ALL)"], resources={"limits": {"cpu": "100m"}})
    lines = output_of(world, pod(container))
    assert lines[0] == "web/front/test-node"
    assert lines[1] == lines[2]
    assert lines[1].count(".") == 3
    assert lines[3:] == [LinuxHost(world.root).address(), "100", "web/front/test-node"]


def test_a_reference_to_an_unknown_field(world: World) -> None:
    env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.colour"}}}]
    answer = start(world, pod(app(env=env)))
    assert (answer.reason, answer.message) == ("CreateContainerConfigError", "unsupported fieldPath: spec.colour")


# -- OOM scores ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort", ["BestEffort", "Burstable", "Guaranteed"])
def test_the_oom_score_depends_on_the_qos_class(world: World, sort: str) -> None:
    """The score has the expected value; it is below 0 only if this machine permits that."""
    host = LinuxHost(world.root)
    all_of_it = {"cpu": "10m", "memory": "64Mi"}
    resources = {
        "BestEffort": {},
        "Burstable": {"requests": {"memory": str(host.memory_bytes() // 2)}},
        "Guaranteed": {"requests": all_of_it, "limits": all_of_it},
    }[sort]
    lowest = "0" if "SYS_RESOURCE" in host.missing_capabilities() else "-997"
    expected = {"BestEffort": {"1000"}, "Burstable": {"500", "501"}, "Guaranteed": {lowest}}[sort]
    (found,) = output_of(world, pod(app("cat /proc/self/oom_score_adj", resources=resources)))
    assert found in expected
