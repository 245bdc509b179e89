"""Namespaces that a pod's containers share with each other and with the node, and the pod's host names."""

import os
import socket
from pathlib import Path

import pytest

from tests.corpus.extra.pods import AppliedPods, add_pod, script
from tests.support.scratch import HANG_SECONDS

pytestmark = pytest.mark.docker

# `[e]` and `[r]` keep the patterns from matching the script or grep itself.
_FINDS_OTHER = "until grep -l marked-othe[r] /proc/[0-9]*/cmdline; do sleep 0.1; done > /dev/null; echo found"

SHARED = add_pod(
    "shares-processes",
    script("app", f"readlink /proc/self/ns/pid; {_FINDS_OTHER}"),
    script("other", ": marked-other"),
    shareProcessNamespace=True,
)
ALONE = add_pod(
    "shares-no-processes",
    script("app", "echo $$$$; readlink /proc/self/ns/ipc; readlink /proc/self/ns/net"),
    shareProcessNamespace=False,
)
HOST_PID = add_pod("host-pid", script("app", "readlink /proc/self/ns/pid"), hostPID=True)
HOST_IPC = add_pod("host-ipc", script("app", "readlink /proc/self/ns/ipc"), hostIPC=True)
HOST_NETWORK = add_pod(
    "host-network",
    script(
        "app",
        "readlink /proc/self/ns/net; hostname; mkdir /page; echo served > /page/index.html; httpd -p 18081 -h /page",
        ports=[{"containerPort": 18081}],
    ),
    hostNetwork=True,
    dnsPolicy="ClusterFirstWithHostNet",
)
HOSTNAME = add_pod("has-a-hostname", script("app", "hostname; grep -w chosen /etc/hosts"), hostname="chosen")
SUBDOMAIN = add_pod("has-a-subdomain", script("app", "hostname; hostname -f"), hostname="chosen", subdomain="below")
FULL_NAME = add_pod(
    "has-its-full-name", script("app", "hostname"), hostname="chosen", subdomain="below", setHostnameAsFQDN=True
)
OVERRIDDEN = add_pod("has-another-name", script("app", "hostname"), hostnameOverride="quite.another.name")
ALIASES = add_pod(
    "aliases",
    script("app", "cat /etc/hosts; ping -c 1 -w 5 first | head -1"),
    hostAliases=[
        {"ip": "127.1.2.3", "hostnames": ["first", "second"]},
        {"ip": "127.1.2.4", "hostnames": ["third"]},
    ],
)
RESOLVER = add_pod(
    "resolver",
    script("app", "cat /etc/resolv.conf"),
    dnsPolicy="None",
    dnsConfig={
        "nameservers": ["10.9.8.7", "10.9.8.6"],
        "searches": ["one.example", "two.example"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    },
)


def namespace(pid: int | str, kind: str) -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


def test_containers_that_share_their_processes(pods: AppliedPods) -> None:
    shared, found = pods.output(SHARED).splitlines()
    assert found == "found"
    assert shared == namespace(pods.inspected(SHARED)["POD"]["State"]["Pid"], "pid")
    assert shared == namespace(pods.inspected(SHARED)["other"]["State"]["Pid"], "pid")
    assert shared != namespace("self", "pid")


def test_containers_that_share_only_the_usual_namespaces(pods: AppliedPods) -> None:
    pid, ipc, net = pods.output(ALONE).splitlines()
    sandbox = pods.inspected(ALONE)["POD"]["State"]["Pid"]
    assert (pid, ipc, net) == ("1", namespace(sandbox, "ipc"), namespace(sandbox, "net"))
    assert ipc != namespace("self", "ipc")


def test_processes_of_the_node(pods: AppliedPods) -> None:
    assert pods.output(HOST_PID) == f"{namespace('self', 'pid')}\n"
    assert pods.differences(HOST_PID) == []


def test_shared_memory_of_the_node(pods: AppliedPods) -> None:
    assert pods.output(HOST_IPC) == f"{namespace('self', 'ipc')}\n"
    assert pods.differences(HOST_IPC) == []


def test_the_network_of_the_node(pods: AppliedPods) -> None:
    network, name = pods.output(HOST_NETWORK).splitlines()
    engine = pods.node.engine
    assert network == namespace(engine.pid, "net")
    assert name == socket.gethostname()
    assert engine.namespace.http(18081, timeout=HANG_SECONDS).body == b"served\n"
    address = pods.pod(HOST_NETWORK)["status"]["podIP"]
    assert f"inet {address}/" in engine.namespace.run("ip", "-4", "-o", "address", "show", "docker0").stdout
    assert pods.differences(HOST_NETWORK) == []


def test_a_host_name(pods: AppliedPods) -> None:
    name, line = pods.output(HOSTNAME).splitlines()
    assert (name, line.split()) == ("chosen", [pods.pod(HOSTNAME)["status"]["podIP"], "chosen"])


def test_a_subdomain(pods: AppliedPods) -> None:
    assert pods.output(SUBDOMAIN).splitlines()[0] == "chosen"


def test_a_full_name_as_the_host_name(pods: AppliedPods) -> None:
    assert pods.output(FULL_NAME) == "chosen.below.default.svc\n"


def test_a_host_name_that_overrides_all_others(pods: AppliedPods) -> None:
    assert pods.output(OVERRIDDEN) == "quite.another.name\n"


def test_other_names_in_the_hosts_file(pods: AppliedPods) -> None:
    text = pods.output(ALIASES)
    assert "127.1.2.3\tfirst\tsecond\n127.1.2.4\tthird\n" in text
    assert text.splitlines()[-1].startswith("PING first (127.1.2.3)")


def test_another_resolver(pods: AppliedPods) -> None:
    lines = [line.split() for line in pods.output(RESOLVER).splitlines() if line and not line.startswith("#")]
    assert [line[1] for line in lines if line[0] == "nameserver"] == ["10.9.8.7", "10.9.8.6"]
    assert [line[1:] for line in lines if line[0] == "search"] == [["one.example", "two.example"]]
    assert [line[1:] for line in lines if line[0] == "options"] == [["ndots:2", "edns0"]]
    assert {line[0] for line in lines} == {"nameserver", "search", "options"}


def test_this_process_is_in_the_nodes_namespaces() -> None:
    """The tests above compare with this process, which shares all namespaces but the network with dockerd."""
    assert Path("/proc/1").exists()
    assert namespace("self", "pid") == namespace(os.getppid(), "pid")
