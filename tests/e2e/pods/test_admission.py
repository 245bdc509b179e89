"""Admission of pods: host ports, sysctls and node selectors, and what `get nodes` shows about the node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chronolet_schemas import kube_events
from tests.e2e.node import pod, running_node, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis

LABELS = ("--node-labels", "disk=hdd", "--max-parallel-starts", "2")


def on_port(name: str) -> dict[str, object]:
    return pod(name, shell("app", ports=[{"containerPort": 80, "hostPort": 8123}]))


def test_a_pod_waits_for_a_held_port_and_a_forbidden_kernel_parameter_is_rejected(
    docker_engine: PrivateDocker, tmp_path: Path
) -> None:
    with private_redis() as server, running_node(docker_engine, server.url, "admits", tmp_path, more=LABELS) as node:
        node.write("first.yaml", on_port("first"))
        node.wait_until_running("first")
        unsafe = {"sysctls": [{"name": "kernel.msgmax", "value": "4096"}]}
        files = [
            node.write_unwatched("second.yaml", on_port("second")),
            node.write_unwatched("unsafe.yaml", pod("unsafe", securityContext=unsafe)),
            node.write_unwatched("ssd.yaml", pod("ssd", nodeSelector={"disk": "ssd"})),
        ]
        result = node.chronolet("apply", *(word for file in files for word in ("-f", file)))
        assert result.status == 0, result
        reason = "host port 0.0.0.0:8123/TCP is held by pod default/first"
        lines = result.err.splitlines()
        assert f"warning: pod default/second: {reason}: it waits until that pod is gone (WaitingForHostPorts)" in lines
        forbidden = 'forbidden sysctl: "kernel.msgmax" not allowlisted'
        assert f"warning: pod default/unsafe: it will be rejected: SysctlForbidden: {forbidden}" in lines
        node.wait_for_status("second", "WaitingForHostPorts")
        node.wait_for_status_column("unsafe", "SysctlForbidden")
        node.wait_until_running("ssd")
        recorded = {(one.name, one.reason): one.message for one in node.journal.events(kube_events.Recorded)}
        assert recorded["second", "WaitingForHostPorts"] == reason
        assert recorded["unsafe", "SysctlForbidden"] == forbidden
        assert recorded["ssd", "NodeAffinity"].startswith(
            "spec.nodeSelector: the node does not have the label disk=ssd"
        )
        # An agent that is killed remembers which pod waits and which one holds the port.
        node.kill9()
        node.start(0, *LABELS)
        (node.folder / "first.yaml").unlink()
        node.wait_until_running("second")

        def ready() -> Any:
            """Return the node once it is ready: an agent that was stalled is not ready immediately."""
            found = json.loads(node.chronolet("get", "node", "admits", "-o", "json").out)
            conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
            return found if conditions["Ready"] == "True" else None

        shown = node.journal.wait_for("the node to be ready", ready)
        assert shown["metadata"]["labels"]["disk"] == "hdd"
        assert shown["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("docker://")
        assert "second" in node.chronolet("describe", "node").out
