"""Finds texts of a pod that become too large once references are expanded, from the manifest alone. Pure.

Input: a parsed Pod. Output: blocking findings: `apply` prints them, the `pod` decider does not start the container
(CreateContainerConfigError). Values from the node count as empty (addresses) or 0 (capacity) here; when a container is
started, its texts are checked again with the real values. Next: `acceptance`, the reader of manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from chronolet.rules import downward
from chronolet.rules.downward_files import check_files
from chronolet.rules.validation.expanded_sizes import (
    Sizes,
    TooLargeError,
    check,
    check_path,
    check_words,
    environment_sizes,
    text_bytes,
)
from chronolet.rules.validation.honoured import CONTAINERS
from chronolet_schemas.podspec import BLOCKING, Container, EnvVarSource, Finding, Pod

_NOWHERE = downward.Place()


def findings(pod: Pod) -> Iterator[Finding]:
    """Yield a finding for the first text that is too large in each container, in each of its probes' commands, and in
    the pod's downwardAPI volumes.
    """
    for path, checked in _checks(pod):
        try:
            checked()
        except TooLargeError as error:
            where = f"{path}.{error.path}" if error.path else path
            yield Finding(path=where, severity=BLOCKING, message=error.message, pod=pod.key)


def _checks(pod: Pod) -> Iterator[tuple[str, Callable[[], None]]]:
    for field, begin in CONTAINERS.items():
        for index, container in enumerate(getattr(pod.spec, field)):
            path = f"{begin}{index}]"
            yield path, partial(_container, pod, container)
            for name, command in _commands(container):
                # Probes use the values from the manifest, which are not expanded.
                sizes = {one.name: text_bytes(one.value) for one in container.env}
                yield f"{path}.{name}.exec", partial(check_words, "command", command, sizes)
    yield "spec", partial(check_files, pod, _NOWHERE)


def _container(pod: Pod, container: Container) -> None:
    sizes = environment_sizes(container.env, lambda source: _value(source, pod, container))
    check(container, sizes)
    _paths(container, sizes)


def _paths(container: Container, sizes: Sizes) -> None:
    for index, mount in enumerate(container.volume_mounts):
        check_path(f"volumeMounts[{index}].subPathExpr", mount.sub_path_expr, sizes)


def _value(source: EnvVarSource, pod: Pod, container: Container) -> str:
    try:
        return downward.value(source, pod, container, _NOWHERE)
    except ValueError:
        return ""  # an unknown field or an invalid amount: reported elsewhere, at its own path


def _commands(container: Container) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, probe in (
        ("livenessProbe", container.liveness_probe),
        ("readinessProbe", container.readiness_probe),
        ("startupProbe", container.startup_probe),
    ):
        if probe is not None and probe.exec is not None:
            yield name, probe.exec.command
