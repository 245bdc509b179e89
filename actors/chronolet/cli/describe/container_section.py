"""Formats the container section of `describe pod`.

Input: the spec and status of one container, and lines about its probes. Output: lines in kubectl's format. Next:
`pod_section`. Source: kubectl's pkg/describe (describeContainers, DescribeProbe). Unlike kubectl, it also shows hooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.containers.parts import Part
from chronolet.cli.describe.layout import line, listed, moment, pairs, truth
from chronolet.cli.describe.probe_section import Probes
from chronolet.pod.state import STATUS_UNKNOWN

Object = dict[str, Any]

_PROBES = (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe"))
_HOOKS = (("Post Start", "postStart"), ("Pre Stop", "preStop"))


def described(part: Part, pod: Object, probes: Probes) -> Iterator[str]:
    """Yield the lines that describe one container."""
    container, status = part.definition, part.status
    yield f"  {part.name}:"
    yield line("Container ID", status.get("containerID", ""), 4)
    yield line("Image", container.get("image", ""), 4)
    yield line("Image ID", status.get("imageID", ""), 4)
    yield from _ports(container.get("ports", []))
    if container.get("restartPolicy"):
        yield line("Restart Policy", container["restartPolicy"], 4)
    for name in ("command", "args"):
        # A multi-line script in one argument is printed line by line.
        yield from listed(name.capitalize(), [one for word in container.get(name, []) for one in word.split("\n")])
    yield from _state("State", status.get("state", {}))
    if status.get("lastState"):
        yield from _state("Last State", status["lastState"])
    yield line("Ready", truth(status.get("ready")), 4)
    yield line("Restart Count", str(status.get("restartCount", 0)), 4)
    for name in ("limits", "requests"):
        amounts = container.get("resources", {}).get(name, {})
        yield from listed(name.capitalize(), pairs(sorted(amounts.items())))
    yield from _checks(container, probes)
    yield from _environment(container, pod)
    yield from listed("Mounts", [_mount(one) for one in container.get("volumeMounts", [])], absent="<none>")
    if container.get("volumeDevices"):
        devices = [f"{one['devicePath']} from {one['name']}" for one in container["volumeDevices"]]
        yield from listed("Devices", devices)


def _ports(ports: Sequence[Object]) -> Iterator[str]:
    several = "s" if len(ports) > 1 else ""
    yield line(f"Port{several}", ", ".join(_port(one, "containerPort") for one in ports) or "<none>", 4)
    yield line(f"Host Port{several}", ", ".join(_port(one, "hostPort") for one in ports) or "<none>", 4)


def _port(port: Object, which: str) -> str:
    named = f" ({port['name']})" if which == "containerPort" and port.get("name") else ""
    return f"{port.get(which, 0)}/{port.get('protocol', 'TCP')}{named}"


def _state(title: str, state: Object) -> Iterator[str]:
    """Yield a line such as `State: Running`, followed by indented lines with details."""
    word, detail = next(iter((state or {"waiting": {}}).items()))
    yield line(title, word.capitalize(), 4)
    for name in ("reason", "message"):
        if detail.get(name):
            yield line(name.capitalize(), detail[name], 6)
    if word == "terminated":
        code = str(detail.get("exitCode", 0))
        # The API requires an exit code even if the exit was not observed; in that case 137 does not prove a kill.
        yield line("Exit Code", f"unknown ({code})" if detail.get("reason") == STATUS_UNKNOWN else code, 6)
    for name, key in (("Started", "startedAt"), ("Finished", "finishedAt")):
        if detail.get(key):
            yield line(name, moment(detail[key]), 6)


def _checks(container: Object, probes: Probes) -> Iterator[str]:
    for title, name in _PROBES:
        if container.get(name):
            yield line(title, _probe(container[name]), 4)
            yield from probes.get((container["name"], title), ())
    for title, name in _HOOKS:
        handler = container.get("lifecycle", {}).get(name)
        if handler:
            yield line(title, _action(handler), 4)


def _probe(probe: Object) -> str:
    return (
        f"{_action(probe)} delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 1)}s "
        f"period={probe.get('periodSeconds', 10)}s #success={probe.get('successThreshold', 1)} "
        f"#failure={probe.get('failureThreshold', 3)}"
    )


def _action(handler: Object) -> str:
    """Format the action of a handler: a command, a request, a connection or a sleep."""
    if "exec" in handler:
        return f"exec [{' '.join(handler['exec'].get('command', []))}]"
    if "httpGet" in handler:
        get = handler["httpGet"]
        scheme, path = get.get("scheme", "HTTP").lower(), get.get("path", "/")
        return f"http-get {scheme}://{get.get('host', '')}:{get.get('port', '')}{path}"
    if "tcpSocket" in handler:
        return f"tcp-socket {handler['tcpSocket'].get('host', '')}:{handler['tcpSocket'].get('port', '')}"
    if "grpc" in handler:
        return f"grpc <pod>:{handler['grpc'].get('port', '')} {handler['grpc'].get('service', '')}".rstrip()
    if "sleep" in handler:
        return f"sleep {handler['sleep'].get('seconds', 0)}s"
    return "unknown"


def _environment(container: Object, pod: Object) -> Iterator[str]:
    yield from listed("Environment Variables from", [_source(one) for one in container.get("envFrom", [])])
    env = [(one["name"], _value(one, pod)) for one in container.get("env", [])]
    yield from listed("Environment", pairs(env), absent="<none>")


def _source(one: Object) -> str:
    prefix = f" with prefix '{one['prefix']}'" if one.get("prefix") else ""
    for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        if key in one:
            return f"{one[key].get('name', '')}  {kind}{prefix}  Optional: {_optional(one[key])}"
    return "unknown"


def _value(variable: Object, pod: Object) -> str:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value", ""))
    for key, words in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        if key in source:
            one = source[key]
            return f"<set to the key '{one.get('key')}' {words} '{one.get('name')}'>  Optional: {_optional(one)}"
    if "fieldRef" in source:
        path = source["fieldRef"].get("fieldPath", "")
        return f"{_field(pod, path)} ({source['fieldRef'].get('apiVersion', 'v1')}:{path})"
    if "resourceFieldRef" in source:
        return f" ({source['resourceFieldRef'].get('resource', '')})"
    return "<from another source>"


def _field(pod: Object, path: str) -> str:
    """Return the current value of the pod's field; empty if the field is unset or not a string."""
    section, _, name = path.partition(".")
    found = pod.get(section, {})
    value = found.get(name, "") if isinstance(found, dict) else ""
    return value if isinstance(value, str) else ""


def _optional(reference: Object) -> str:
    return str(bool(reference.get("optional"))).lower()


def _mount(mount: Object) -> str:
    paths = [f'path="{mount[key]}"' for key in ("subPath", "subPathExpr") if mount.get(key)]
    flags = ["ro" if mount.get("readOnly") else "rw", *paths]
    return f"{mount['mountPath']} from {mount['name']} ({','.join(flags)})"
