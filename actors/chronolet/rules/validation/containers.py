"""Validates one container as the API server does. Pure.

Input: a defaulted container, its path, the names of the pod's volumes. Output: problems. Next: `pods`.
Source: validateContainers and its callees in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from fractions import Fraction

from chronolet.rules.names import names
from chronolet.rules.names.ports import LARGEST_PORT
from chronolet.rules.resources import quantities
from chronolet.rules.resources.resources import HUGE_PAGES
from chronolet.rules.validation.actions import action_problems
from chronolet.rules.validation.problems import Problem, name_problems, repeated, required, within
from chronolet_schemas.podspec import (
    Container,
    ContainerPort,
    EnvVar,
    ResourceRequirements,
    VolumeMount,
    plain,
)

_SHOWN_VOLUMES = 10
_KIB = 1 << 10

_FRACTIONAL = frozenset({"cpu", "memory", "ephemeral-storage"})
_OVERCOMMITTED = _FRACTIONAL


def container_problems(path: str, container: Container, volumes: frozenset[str]) -> Iterator[Problem]:
    """Yield the problems with a container; of its pod, only the names of the volumes are considered."""
    if container.name:
        yield from name_problems(f"{path}.name", container.name, names.label_problem)
    else:
        yield Problem(f"{path}.name", "missing, expected the container's name")
    yield from _image(f"{path}.image", container.image)
    yield from _ports(f"{path}.ports", container.ports)
    for index, variable in enumerate(container.env):
        yield from _variable(f"{path}.env[{index}]", variable)
    yield from resource_problems(f"{path}.resources", container.resources)
    yield from _mounts(f"{path}.volumeMounts", container.volume_mounts, volumes)
    yield from action_problems(path, container)


def _image(path: str, image: str) -> Iterator[Problem]:
    yield from required(path, image, "an image such as nginx:1.27")
    if image != image.strip():
        yield Problem(path, f"{image!r} begins or ends with a blank")


def _ports(path: str, ports: tuple[ContainerPort, ...]) -> Iterator[Problem]:
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if port.name:
            yield from name_problems(f"{here}.name", port.name, names.port_problem)
        if port.container_port:
            yield from within(f"{here}.containerPort", port.container_port, 1, LARGEST_PORT)
        else:
            yield Problem(f"{here}.containerPort", f"missing, expected 1 to {LARGEST_PORT}")
        yield from within(f"{here}.hostPort", port.host_port, 0, LARGEST_PORT)
        yield from _address(f"{here}.hostIP", port.host_ip)
    yield from repeated(path, "name", [port.name for port in ports])


def _address(path: str, text: str) -> Iterator[Problem]:
    try:
        if text:
            ipaddress.ip_address(text)
    except ValueError:
        yield Problem(path, f"{text!r} is not an IP address")


def _variable(path: str, variable: EnvVar) -> Iterator[Problem]:
    if variable.name:
        yield from name_problems(f"{path}.name", variable.name, names.env_problem)
    else:
        yield Problem(f"{path}.name", "missing, expected the variable's name")
    if variable.value_from is None:
        return
    sources = sorted(plain(variable.value_from))
    if variable.value:
        yield Problem(f"{path}.valueFrom", "is set together with value, expected only one of them")
    if len(sources) != 1:
        yield Problem(f"{path}.valueFrom", f"names {len(sources)} sources, expected one")


def resource_problems(path: str, resources: ResourceRequirements) -> Iterator[Problem]:
    """Validate limits and requests: their names and amounts, and that they are consistent."""
    # A request equal to its limit may come from defaulting: its problems are reported where the user wrote the limit.
    own = {name: text for name, text in resources.requests.items() if resources.limits.get(name) != text}
    for field, amounts in (("limits", resources.limits), ("requests", own)):
        for name, text in amounts.items():
            yield from name_problems(f"{path}.{field}", name, names.qualified_problem, "key ")
            yield from amount_problems(f"{path}.{field}.{name}", name, text)
    yield from _requests_fit(path, resources)
    used = {*resources.limits, *resources.requests}
    if any(name.startswith(HUGE_PAGES) for name in used) and not used & {"cpu", "memory"}:
        yield Problem(path, "has huge pages only, expected cpu or memory as well")


def amount_problems(path: str, name: str, text: str) -> Iterator[Problem]:
    """Validate an amount of the resource `name`: it must be a quantity of 0 or more; a whole number, unless the
    resource is divisible; and for huge pages, a multiple of the page size.
    """
    try:
        value = quantities.parse(text)
        (quantities.cpu_milli if name == "cpu" else quantities.whole)(text)
    except quantities.QuantityError as error:
        yield Problem(path, str(error))
        return
    if value < 0:
        yield Problem(path, f"{text} is below 0")
    elif name not in _FRACTIONAL and value.denominator != 1:
        yield Problem(path, f"{text} is not a whole number")
    elif name.startswith(HUGE_PAGES):
        yield from _page_problems(path, name.removeprefix(HUGE_PAGES), text, int(value))


def _page_problems(path: str, size: str, text: str, value: int) -> Iterator[Problem]:
    """Validate an amount of huge pages; a page size is a multiple of 1 KiB on every machine."""
    try:
        page = quantities.parse(size)
    except quantities.QuantityError:
        page = Fraction(0)
    if page <= 0 or page % _KIB:
        yield Problem(path, f"{size!r} is not a page size, expected one such as 2Mi or 1Gi")
    elif value % page:
        yield Problem(path, f"{text} is not a multiple of the page size {size}")


def _requests_fit(path: str, resources: ResourceRequirements) -> Iterator[Problem]:
    """Report requests above their limit and, for resources that cannot be overcommitted, requests below their limit;
    for extended resources and huge pages, also requests without a limit.
    """
    for name, text in resources.requests.items():
        limit = resources.limits.get(name)
        if limit is None:
            if "/" in name or name.startswith(HUGE_PAGES):
                yield Problem(f"{path}.limits", f"names no {name}, expected the request's {text}")
            continue
        try:
            requested, allowed = quantities.parse(text), quantities.parse(limit)
        except quantities.QuantityError:
            continue  # reported at its own path
        if requested > allowed:
            yield Problem(f"{path}.requests.{name}", f"{text} is above the limit {limit}")
        elif requested < allowed and name not in _OVERCOMMITTED:
            yield Problem(f"{path}.requests.{name}", f"{text} is below the limit {limit}, expected the same")


def _mounts(path: str, mounts: tuple[VolumeMount, ...], volumes: frozenset[str]) -> Iterator[Problem]:
    for index, mount in enumerate(mounts):
        here = f"{path}[{index}]"
        if not mount.name:
            yield Problem(f"{here}.name", "missing, expected the name of a volume")
        elif mount.name not in volumes:
            yield Problem(f"{here}.name", f"{mount.name!r} is not among the pod's volumes{_listed(volumes)}")
        yield from required(f"{here}.mountPath", mount.mount_path, "a path in the container")
        if ":" in mount.mount_path:
            yield Problem(f"{here}.mountPath", f"{mount.mount_path!r} contains ':'")
        for field, value in (("subPath", mount.sub_path), ("subPathExpr", mount.sub_path_expr)):
            if value.startswith("/") or ".." in value.split("/"):
                yield Problem(f"{here}.{field}", f"{value!r} leaves the volume, expected a relative path without '..'")
    yield from repeated(path, "mountPath", [mount.mount_path for mount in mounts])


def _listed(volumes: frozenset[str]) -> str:
    return f" ({', '.join(sorted(volumes)) or 'it has none'})" if len(volumes) <= _SHOWN_VOLUMES else ""
