"""The page that `describe pod` prints.

Comes in: a Pod as the API has it, and what was told about it. Goes out: lines in kubectl's form. Source: kubectl's
describePod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chronolet.cli import ages, pods, table
from chronolet.history.kube_events import Told

Object = dict[str, Any]

_COLUMN, _INNER_COLUMN = 18, 20
_EVENTS = ("Type", "Reason", "Age", "From", "Message")


def described(pod: Object, told: Sequence[Told], now: int) -> Iterator[str]:
    """The page."""
    spec, status = pod["spec"], pod.get("status", {})
    yield from _head(pod["metadata"], spec, status, now)
    yield "Containers:"
    known = {one["name"]: one for one in status.get("containerStatuses", [])}
    for container in spec.get("containers", []):
        yield from _container(container, known.get(container["name"], {}))
    yield from _conditions(status.get("conditions", []))
    yield from _volumes(spec.get("volumes", []))
    yield from _events(told, now)


def _head(metadata: Object, spec: Object, status: Object, now: int) -> Iterator[str]:
    yield _line("Name", metadata["name"])
    yield _line("Namespace", metadata["namespace"])
    yield _line("UID", metadata["uid"])
    yield _line("Node", spec.get("nodeName") or "<none>")
    yield _line("Start Time", _moment(status.get("startTime")))
    yield from _mapping("Labels", metadata.get("labels", {}), "=")
    yield from _mapping("Annotations", metadata.get("annotations", {}), ": ")
    if metadata.get("deletionTimestamp"):
        # The API's timestamp is that of the deadline: asked for plus grace.
        grace = metadata.get("deletionGracePeriodSeconds", 0)
        since = ages.ago(pods.milliseconds(metadata["deletionTimestamp"]) - grace * 1000, now)
        yield _line("Status", f"Terminating (lasts {since}, grace period {grace}s)")
    else:
        yield _line("Status", status.get("phase", "Unknown"))
    for name in ("reason", "message"):
        if status.get(name):
            yield _line(name.capitalize(), status[name])
    yield _line("IP", status.get("podIP", ""))


def _container(container: Object, status: Object) -> Iterator[str]:
    ports = container.get("ports", [])
    yield f"  {container['name']}:"
    yield _line("Container ID", status.get("containerID", ""), 4)
    yield _line("Image", container.get("image", ""), 4)
    yield _line("Image ID", status.get("imageID", ""), 4)
    yield _line("Port", ", ".join(_port(port, "containerPort") for port in ports) or "<none>", 4)
    yield _line("Host Port", ", ".join(_port(port, "hostPort") for port in ports) or "<none>", 4)
    for name in ("command", "args"):
        yield from _list(name.capitalize(), container.get(name, []))
    yield from _state("State", status.get("state", {}))
    if status.get("lastState"):
        yield from _state("Last State", status["lastState"])
    yield _line("Ready", str(bool(status.get("ready"))), 4)
    yield _line("Restart Count", str(status.get("restartCount", 0)), 4)
    for name in ("limits", "requests"):
        amounts = container.get("resources", {}).get(name, {})
        yield from _list(name.capitalize(), _pairs(sorted(amounts.items())))
    env = [(one["name"], one.get("value", "<from elsewhere>")) for one in container.get("env", [])]
    yield from _list("Environment", _pairs(env), absent="<none>")
    yield from _list("Mounts", [_mount(mount) for mount in container.get("volumeMounts", [])], absent="<none>")


def _pairs(pairs: Sequence[tuple[str, str]]) -> Sequence[str]:
    """`name:  value`, the values below one another."""
    width = max((len(name) for name, _ in pairs), default=0) + 3
    return [f"{name}:".ljust(width) + value for name, value in pairs]


def _list(title: str, lines: Sequence[str], absent: str = "") -> Iterator[str]:
    """The title and a line for each item; nothing, or `absent`, where there is none."""
    if lines:
        yield f"    {title}:"
        yield from (f"      {table.plain(line)}" for line in lines)
    elif absent:
        yield _line(title, absent, 4)


def _state(title: str, state: Object) -> Iterator[str]:
    """`State: Running` and what belongs to it, indented."""
    word, detail = next(iter((state or {"waiting": {}}).items()))
    yield _line(title, word.capitalize(), 4)
    for name in ("reason", "message"):
        if detail.get(name):
            yield _line(name.capitalize(), detail[name], 6)
    if word == "terminated":
        yield _line("Exit Code", str(detail.get("exitCode", 0)), 6)
    for name, key in (("Started", "startedAt"), ("Finished", "finishedAt")):
        if detail.get(key):
            yield _line(name, _moment(detail[key]), 6)


def _conditions(conditions: Sequence[Object]) -> Iterator[str]:
    if conditions:
        yield "Conditions:"
        yield from table.lines(("Type", "Status"), [(one["type"], one["status"]) for one in conditions], indent="  ")


def _volumes(volumes: Sequence[Object]) -> Iterator[str]:
    if not volumes:
        yield _line("Volumes", "<none>")
        return
    yield "Volumes:"
    for volume in volumes:
        yield f"  {volume['name']}:"
        sources = [(name, detail) for name, detail in volume.items() if name != "name"] or [("emptyDir", {})]
        for source, detail in sources:
            yield _line("Type", _titled(source), 4)
            for name, value in detail.items():
                # `Type` says already which source it is: a hostPath's own is its HostPathType.
                yield _line(_titled(source) + "Type" if name == "type" else _titled(name), str(value), 4)


def _events(told: Sequence[Told], now: int) -> Iterator[str]:
    if not told:
        yield _line("Events", "<none>")
        return
    yield "Events:"
    rows = [(one.severity, one.reason, _age(one, now), _source(one), one.message) for one in told]
    yield from table.lines(_EVENTS, [["-" * len(name) for name in _EVENTS], *rows], indent="  ")


def _age(told: Told, now: int) -> str:
    last = ages.ago(told.last, now)
    return last if told.count == 1 else f"{last} (x{told.count} over {ages.ago(told.first, now)})"


def _source(told: Told) -> str:
    """The actor, with the container where it is about one: the kubelet's messages do not always name it."""
    container = told.field_path.removeprefix("spec.containers{").removesuffix("}")
    return f"{told.source} ({container})" if container else told.source


def _mapping(title: str, values: Mapping[str, str], mark: str) -> Iterator[str]:
    """A value on each line, the first beside the title."""
    for index, text in enumerate([f"{name}{mark}{value}" for name, value in sorted(values.items())] or ["<none>"]):
        yield _line("" if index else title, text)


def _line(title: str, text: str, indent: int = 0) -> str:
    column = _INNER_COLUMN if indent else _COLUMN
    begin = " " * indent + (f"{title}:" if title else "")
    return f"{begin.ljust(column)}{table.plain(text)}".rstrip()


def _titled(name: str) -> str:
    return name[:1].upper() + name[1:]


def _moment(text: str | None) -> str:
    return ages.local(pods.milliseconds(text)) if text else ""


def _port(port: Object, which: str) -> str:
    return f"{port.get(which, 0)}/{port.get('protocol', 'TCP')}"


def _mount(mount: Object) -> str:
    return f"{mount['mountPath']} from {mount['name']} ({'ro' if mount.get('readOnly') else 'rw'})"
