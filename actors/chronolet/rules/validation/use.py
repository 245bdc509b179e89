"""Validates a container's mounts, references to the pod's fields, hooks and stop signal. Pure.

Input: a defaulted pod's spec, its containers with their paths. Output: problems. Next: `pods`. Source:
ValidateVolumeMounts, validateEnvVarValueFrom, validateLifecycle, validateDownwardAPIVolumeSource in
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chronolet.rules import downward
from chronolet.rules.validation.problems import Problem, required, within
from chronolet_schemas.podspec import (
    Container,
    DownwardFile,
    EnvVarSource,
    LifecycleHandler,
    PodSpec,
    Volume,
    VolumeMount,
    plain,
)

_MODES = 0o777
_SIGNALS = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP "
    "TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX"
)
_REAL_TIME = re.compile(r"RTMIN\+(?:[1-9]|1[0-5])|RTMAX-(?:[1-9]|1[0-4])")


def use_problems(path: str, spec: PodSpec, containers: Sequence[tuple[str, Container]]) -> Iterator[Problem]:
    """Yield problems with each container's mounts, references, hooks and stop signal, and with downwardAPI volumes.
    `path`: the path of the spec; `containers`: all containers, each with its path.
    """
    for here, container in containers:
        for index, mount in enumerate(container.volume_mounts):
            yield from _mount(f"{here}.volumeMounts[{index}]", mount, container)
        for index, variable in enumerate(container.env):
            if variable.value_from is not None and len(plain(variable.value_from)) == 1:
                yield from _reference(f"{here}.env[{index}].valueFrom", variable.value_from)
        yield from _life(f"{here}.lifecycle", container, spec)
    for index, volume in enumerate(spec.volumes):
        yield from _files(f"{path}.volumes[{index}].downwardAPI.items", volume)


def _mount(path: str, mount: VolumeMount, container: Container) -> Iterator[Problem]:
    if mount.sub_path and mount.sub_path_expr:
        yield Problem(f"{path}.subPathExpr", "subPathExpr and subPath are mutually exclusive")
    context = container.security_context
    if mount.mount_propagation == "Bidirectional" and not (context is not None and context.privileged):
        here = f"{path}.mountPropagation"
        yield Problem(here, "Bidirectional mount propagation is available only to privileged containers")
    if mount.recursive_read_only in ("Enabled", "IfPossible"):
        if not mount.read_only:
            yield Problem(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
        if mount.mount_propagation not in (None, "None"):
            yield Problem(f"{path}.recursiveReadOnly", "may only be specified when mountPropagation is None")


def _reference(path: str, source: EnvVarSource) -> Iterator[Problem]:
    if source.field_ref is not None:
        yield from _field(f"{path}.fieldRef.fieldPath", source.field_ref.field_path, downward.IN_ENV)
    if source.resource_field_ref is not None:
        yield from _resource(f"{path}.resourceFieldRef.resource", source.resource_field_ref.resource)


def _field(path: str, name: str, known: frozenset[str]) -> Iterator[Problem]:
    if name not in known and downward.keyed(name) is None:
        yield Problem(path, f"{name!r} is not a field available here, expected one of {', '.join(sorted(known))}")


def _resource(path: str, name: str) -> Iterator[Problem]:
    if name not in downward.RESOURCES:
        yield Problem(path, f"{name!r} is not supported, expected one of {', '.join(sorted(downward.RESOURCES))}")


def _life(path: str, container: Container, spec: PodSpec) -> Iterator[Problem]:
    lifecycle = container.lifecycle
    if lifecycle is None:
        return
    for field, hook in (("postStart", lifecycle.post_start), ("preStop", lifecycle.pre_stop)):
        if hook is not None:
            yield from _sleep(f"{path}.{field}.sleep.seconds", hook, spec.termination_grace_period_seconds)
    if not lifecycle.stop_signal:
        return
    if spec.os is None or not spec.os.name:
        yield Problem(f"{path}.stopSignal", "may not be set while `spec.os.name` is not")
    signal = lifecycle.stop_signal.removeprefix("SIG")
    if not lifecycle.stop_signal.startswith("SIG") or not (signal in _SIGNALS.split() or _REAL_TIME.fullmatch(signal)):
        message = f"{lifecycle.stop_signal!r} is not a signal, expected a name such as SIGTERM"
        yield Problem(f"{path}.stopSignal", message)


def _sleep(path: str, hook: LifecycleHandler, grace: int) -> Iterator[Problem]:
    if hook.sleep is not None and not 0 <= hook.sleep.seconds <= grace:
        message = f"{hook.sleep.seconds} must be at least 0 and at most terminationGracePeriodSeconds ({grace})"
        yield Problem(path, message)


def _files(path: str, volume: Volume) -> Iterator[Problem]:
    if volume.downward_api is None:
        return
    for index, item in enumerate(volume.downward_api.items):
        yield from _file(f"{path}[{index}]", item)


def _file(path: str, item: DownwardFile) -> Iterator[Problem]:
    yield from required(f"{path}.path", item.path, "a path in the volume")
    if item.path.startswith("/") or ".." in item.path.split("/"):
        yield Problem(f"{path}.path", f"{item.path!r} leaves the volume, expected a relative path without '..'")
    if item.mode is not None:
        yield from within(f"{path}.mode", item.mode, 0, _MODES)
    if (item.field_ref is None) == (item.resource_field_ref is None):
        yield Problem(path, "expected one of fieldRef and resourceFieldRef")
    if item.field_ref is not None:
        yield from _field(f"{path}.fieldRef.fieldPath", item.field_ref.field_path, downward.IN_VOLUMES)
    if item.resource_field_ref is not None:
        yield from required(
            f"{path}.resourceFieldRef.containerName", item.resource_field_ref.container_name, "a container's name"
        )
        yield from _resource(f"{path}.resourceFieldRef.resource", item.resource_field_ref.resource)
