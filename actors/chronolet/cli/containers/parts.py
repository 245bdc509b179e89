"""Lists a pod's containers of every kind, and selects its default container.

Input: a Pod in API form. Output: each container's definition and status. Next: `logs`, `exec`, `describe`,
`containers`. Source: kubectl's pkg/cmd/util/podcmd.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import click

from chronolet.cli.errors import Failure

Object = dict[str, Any]
Kind = Literal["init", "app", "ephemeral"]

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_LISTS: tuple[tuple[Kind, str, str], ...] = (
    ("init", "initContainers", "initContainerStatuses"),
    ("app", "containers", "containerStatuses"),
    ("ephemeral", "ephemeralContainers", "ephemeralContainerStatuses"),
)
_REMARKS: dict[Kind, str] = {"init": " (init)", "ephemeral": " (ephem)", "app": ""}


class Part(NamedTuple):
    """One container of a pod. `status` is empty until the agent first acts on the container."""

    name: str
    kind: Kind
    definition: Object
    status: Object


def parts(pod: Object) -> list[Part]:
    """Return all containers in start order."""
    return [part for kind, definitions, statuses in _LISTS for part in _parts(pod, kind, definitions, statuses)]


def _parts(pod: Object, kind: Kind, definitions: str, statuses: str) -> Iterator[Part]:
    known = {one["name"]: one for one in pod.get("status", {}).get(statuses, [])}
    for definition in pod["spec"].get(definitions, []):
        yield Part(definition["name"], kind, definition, known.get(definition["name"], {}))


def chosen(pod: Object, name: str | None, *, quiet: bool = False) -> Part:
    """Return the container called `name`, or the default one if `name` is None. Raises Failure if there is none."""
    found = parts(pod)
    if name is None:
        return _default(pod, found, quiet=quiet)
    for part in found:
        if part.name == name:
            return part
    raise Failure(f"container {name} is not valid for pod {pod['metadata']['name']}, expected {_names(found)}")


def _default(pod: Object, found: Sequence[Part], *, quiet: bool) -> Part:
    """Return the container named by the annotation, or else the first app container.

    Unless `quiet`, print a message if the named container does not exist, and if the first app container was chosen
    from several. Raises Failure if the pod has no app container.
    """
    apps = [part for part in found if part.kind == "app"]
    if not apps:
        raise Failure(f"pod {pod['metadata']['name']} does not have any containers")
    annotated: str = pod["metadata"].get("annotations", {}).get(DEFAULT_CONTAINER, "")
    for part in found:
        if part.name == annotated:
            return part
    if annotated and not quiet:
        name = pod["metadata"]["name"]
        click.echo(f'Default container name "{annotated}" not found in pod {name}', err=True)
    if len(found) > 1 and not quiet:
        click.echo(f'Defaulted container "{apps[0].name}" out of: {_names(found)}', err=True)
    return apps[0]


def _names(found: Sequence[Part]) -> str:
    """Return all names in kubectl's order, which begins with the app containers."""
    order = {"app": 0, "ephemeral": 1, "init": 2}
    return ", ".join(part.name + _REMARKS[part.kind] for part in sorted(found, key=lambda part: order[part.kind]))
