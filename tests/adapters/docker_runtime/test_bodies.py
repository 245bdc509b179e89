"""Request bodies for the engine, including features that this machine's engine does not support."""

from typing import Any

import msgspec
import pytest

from chronolet.adapters.docker_runtime import bodies
from chronolet.ports.runtime.runtime import ContainerSpec, Device, Mount, PortMapping, SandboxSpec


def container(**fields: Any) -> dict[str, Any]:
    spec = ContainerSpec(name="c", labels={}, sandbox_id="box", image="i:1", **fields)
    found: dict[str, Any] = msgspec.json.decode(bodies.container(spec))
    return found


def sandbox(**fields: Any) -> dict[str, Any]:
    spec = SandboxSpec(name="s", labels={}, image="pause", hostname="web", **fields)
    found: dict[str, Any] = msgspec.json.decode(bodies.sandbox(spec))
    return found


def test_a_plain_container_requests_no_privileges() -> None:
    body = container()
    host = body["HostConfig"]
    assert (host["Privileged"], host["ReadonlyRootfs"], host["CapAdd"], host["CapDrop"], host["GroupAdd"]) == (
        False,
        False,
        [],
        [],
        [],
    )
    assert not {"SecurityOpt", "PidMode", "Devices", "DeviceRequests"} & host.keys()
    assert (host["NetworkMode"], host["IpcMode"]) == ("container:box", "container:box")
    assert (body["User"], body["Tty"], body["OpenStdin"], body["StdinOnce"]) == ("", False, False, False)
    assert "StopSignal" not in body


def test_privileges() -> None:
    body = container(
        privileged=True,
        read_only_root=True,
        cap_add=["NET_ADMIN"],
        cap_drop=["ALL"],
        groups=[5, 6],
        user="1:2",
        security_options=["no-new-privileges", "seccomp=unconfined"],
        host_ipc=True,
        stop_signal="SIGUSR1",
    )
    host = body["HostConfig"]
    assert (host["Privileged"], host["ReadonlyRootfs"], host["IpcMode"]) == (True, True, "host")
    assert (host["CapAdd"], host["CapDrop"], host["GroupAdd"]) == (["NET_ADMIN"], ["ALL"], ["5", "6"])
    assert host["SecurityOpt"] == ["no-new-privileges", "seccomp=unconfined"]
    assert (body["User"], body["StopSignal"]) == ("1:2", "SIGUSR1")


@pytest.mark.parametrize(("pid", "mode"), [("host", "host"), ("abc", "container:abc")])
def test_the_pid_namespace(pid: str, mode: str) -> None:
    assert container(pid=pid)["HostConfig"]["PidMode"] == mode


def test_mounts() -> None:
    mounts = [
        Mount(source="/a", target="/b"),
        Mount(source="/c", target="/d", read_only=True, propagation="rslave"),
        Mount(source="/e", target="/f", propagation="rshared"),
    ]
    assert container(mounts=mounts)["HostConfig"]["Binds"] == ["/a:/b:rw", "/c:/d:ro,rslave", "/e:/f:rw,rshared"]


def test_a_mount_source_that_must_exist() -> None:
    host = container(mounts=[Mount(source="/a", target="/b", read_only=True, has_to_be=True)])["HostConfig"]
    assert host["Binds"] == []
    assert host["Mounts"] == [{"Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": True}]


def test_devices() -> None:
    found = container(devices=[Device(source="/dev/a", target="/dev/b", permissions="r")], cdi_devices=["v.test/n=0"])
    assert found["HostConfig"]["Devices"] == [
        {"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "r"}
    ]
    assert found["HostConfig"]["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": ["v.test/n=0"]}]


def test_a_mount_target_with_a_colon() -> None:
    host = container(mounts=[Mount(source="/a", target="/b:ro", read_only=False)])["HostConfig"]
    assert host["Binds"] == []
    assert host["Mounts"] == [{"Type": "bind", "Source": "/a", "Target": "/b:ro", "ReadOnly": False}]


def test_a_mount_source_with_a_colon() -> None:
    mounts = [
        Mount(source="/a:b", target="/c"),
        Mount(source="/d:e", target="/f", read_only=True, propagation="rslave"),
        Mount(source="/g", target="/h"),
    ]
    host = container(mounts=mounts)["HostConfig"]
    assert host["Binds"] == ["/g:/h:rw"]
    assert host["Mounts"] == [
        {"Type": "bind", "Source": "/a:b", "Target": "/c", "ReadOnly": False},
        {
            "Type": "bind",
            "Source": "/d:e",
            "Target": "/f",
            "ReadOnly": True,
            "BindOptions": {"Propagation": "rslave"},
        },
    ]


def test_a_sandbox_with_its_own_namespaces() -> None:
    body = sandbox(ports=[PortMapping(host_port=80, container_port=8080)], sysctls={"net.ipv4.tcp_syncookies": "1"})
    assert (body["Hostname"], body["ExposedPorts"]) == ("web", {"8080/tcp": {}})
    host = body["HostConfig"]
    assert (host["IpcMode"], host["Sysctls"]) == ("shareable", {"net.ipv4.tcp_syncookies": "1"})
    assert not {"NetworkMode", "PidMode"} & host.keys()


def test_a_sandbox_in_the_namespaces_of_the_host() -> None:
    body = sandbox(host_network=True, host_pid=True, host_ipc=True)
    host = body["HostConfig"]
    assert (host["NetworkMode"], host["PidMode"], host["IpcMode"]) == ("host", "host", "host")
    assert not {"Hostname", "ExposedPorts"} & body.keys()
    assert "PortBindings" not in host
