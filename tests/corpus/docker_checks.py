"""Checks of a Pod's fields in Docker: the value that each field requires there, and the value found.

Input: the field's value, a `PodView`. Output: `Compared`. Next: `comparison`, which walks a manifest with these checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import PurePath
from typing import Any, Final, NamedTuple


class PodView(NamedTuple):
    """A pod in three views (its manifest, the pod shown by `get`, Docker's containers), and the container to be
    checked.
    """

    manifest: Mapping[str, Any]
    pod: Mapping[str, Any]
    docker: Mapping[str, Any]
    hooks: Mapping[tuple[str, str], str] = {}
    """The outcome of each hook, by (container, hook)."""
    probes: Mapping[tuple[str, str], Mapping[str, Any]] = {}
    """The definition of each probe with all fields, by (container, probe name)."""
    container: Mapping[str, Any] = {}

    @property
    def name(self) -> Any:
        """The container's name in its pod."""
        return self.config["Labels"]["io.kubernetes.container.name"]

    @property
    def host(self) -> Any:
        """Docker's HostConfig of the container."""
        return self.container["HostConfig"]

    @property
    def config(self) -> Any:
        """Docker's Config of the container."""
        return self.container["Config"]

    @property
    def sandbox(self) -> Any:
        """Docker's inspect of the pod's sandbox."""
        return self.docker["POD"]


class Compared(NamedTuple):
    """Two values that should be equal."""

    wanted: Any
    found: Any


Check = Callable[[Any, PodView], Compared]

_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def amount(text: Any) -> Fraction:
    """Return a quantity such as `100m` or `64Mi` as a number."""
    digits = str(text).rstrip("mkKMGi")
    unit = str(text)[len(digits) :]
    return Fraction(digits) / 1000 if unit == "m" else Fraction(digits) * _UNITS[unit]


def _shown(*path: str, default: Any = None) -> Check:
    """Compare with the pod that `get` shows, which omits defaults. Used for fields without a counterpart in Docker."""

    def check(value: Any, view: PodView) -> Compared:
        found: Any = view.pod
        for key in path[:-1]:
            found = found[key]
        return Compared(value, found.get(path[-1], default))

    return check


def _label(name: str) -> Check:
    return lambda value, view: Compared(value, view.sandbox["Config"]["Labels"].get(name))


def _config(name: str) -> Check:
    return lambda value, view: Compared(value, view.config[name])


def _host(name: str) -> Check:
    return lambda value, view: Compared(value, view.host[name])


def _namespace(mode: str) -> Check:
    """Check that the sandbox uses the node's namespace if the field is true, and not otherwise."""
    return lambda value, view: Compared("host" if value else None, view.sandbox["HostConfig"][mode] or None)


def _anything(_: Any, __: PodView) -> Compared:
    return Compared(None, None)


# -- containers --------------------------------------------------------------------------------------------------------


def _image(value: str, view: PodView) -> Compared:
    shown = {one["name"]: one for one in _statuses(view)}[view.name]
    return Compared((value, view.container["Image"]), (shown["image"], shown["imageID"].rpartition("//")[2]))


def _statuses(view: PodView) -> list[Any]:
    status = view.pod["status"]
    return [*status.get("initContainerStatuses", []), *status["containerStatuses"]]


def _environment(value: list[Mapping[str, Any]], view: PodView) -> Compared:
    given = view.config["Env"]
    wanted = [f"{one['name']}={_value(one, view)}" for one in value]
    return Compared(wanted, [one for one in wanted if one in given])


def _value(variable: Mapping[str, Any], view: PodView) -> str:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    source = variable["valueFrom"]
    if "resourceFieldRef" in source:
        return _amount_of(source["resourceFieldRef"], view)
    metadata = view.pod["metadata"]
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": view.pod["spec"]["nodeName"],
        "spec.serviceAccountName": view.manifest["spec"].get("serviceAccountName", ""),
        "status.podIP": view.pod["status"].get("podIP"),
    }
    return str(fields[source["fieldRef"]["fieldPath"]])


def _amount_of(reference: Mapping[str, str], view: PodView) -> str:
    """Return the referenced amount in units of the divisor, rounded up."""
    name = reference.get("containerName", view.name)
    container = next(one for one in view.manifest["spec"]["containers"] if one["name"] == name)
    side, _, resource = reference["resource"].partition(".")
    return str(math.ceil(amount(container["resources"][side][resource]) / amount(reference.get("divisor", "1"))))


def _ports(value: list[Mapping[str, Any]], view: PodView) -> Compared:
    """Check that, of these ports, exactly those with a host port are published."""
    bindings = view.sandbox["HostConfig"]["PortBindings"] or {}
    wanted = {
        f"{one['containerPort']}/{one.get('protocol', 'TCP').lower()}": str(one["hostPort"])
        for one in value
        if "hostPort" in one
    }
    all_ports = {f"{one['containerPort']}/{one.get('protocol', 'TCP').lower()}" for one in value}
    return Compared(wanted, {key: held[0]["HostPort"] for key, held in bindings.items() if key in all_ports})


def _mounts(value: list[Mapping[str, Any]], view: PodView) -> Compared:
    found = {one["Destination"]: (_source(one["Source"], view), not one["RW"]) for one in view.container["Mounts"]}
    wanted = {one["mountPath"].rstrip("/"): _wanted(one, view) for one in value}
    return Compared(wanted, {target: found.get(target) for target in wanted})


def _targets(view: PodView) -> list[str]:
    return [one["Destination"] for one in view.container["Mounts"]]


def _wanted(mount: Mapping[str, Any], view: PodView) -> tuple[str, bool]:
    """Return the mount's source, `the pod's own` unless that is a hostPath, and whether the mount is read-only; a
    downwardAPI volume always is.
    """
    volume = next(one for one in view.manifest["spec"]["volumes"] if one["name"] == mount["name"])
    source = str(volume["hostPath"]["path"]) if "hostPath" in volume else "the pod's own"
    return source, mount.get("readOnly", False) or "downwardAPI" in volume


def _source(path: str, view: PodView) -> str:
    return "the pod's own" if view.pod["metadata"]["uid"] in PurePath(path).parts else path


def _cpu_limit(value: Any, view: PodView) -> Compared:
    return Compared(amount(value), Fraction(view.host["CpuQuota"], view.host["CpuPeriod"]))


def _cpu_request(value: Any, view: PodView) -> Compared:
    return Compared(int(amount(value) * 1024), view.host["CpuShares"])


def _memory_limit(value: Any, view: PodView) -> Compared:
    return Compared(amount(value), view.host["Memory"])


def _capabilities(value: Mapping[str, list[str]], view: PodView) -> Compared:
    found = {"add": view.host["CapAdd"] or [], "drop": view.host["CapDrop"] or []}
    plain = {key: sorted(one.removeprefix("CAP_") for one in held) for key, held in found.items()}
    return Compared({key: sorted(held) for key, held in value.items()}, {key: plain[key] for key in value})


def _no_new_privileges(value: bool, view: PodView) -> Compared:
    options = [one.removesuffix(":true") for one in view.host["SecurityOpt"] or []]
    return Compared(not value, "no-new-privileges" in options)


def _user(value: int, view: PodView) -> Compared:
    return Compared(str(value), view.config["User"].partition(":")[0])


def _group(value: int, view: PodView) -> Compared:
    return Compared(str(value), view.config["User"].partition(":")[2])


def _not_root(value: bool, view: PodView) -> Compared:
    return Compared(value, view.config["User"].partition(":")[0] not in ("", "0"))


def _options(prefix: str, view: PodView) -> list[str]:
    return sorted(one for one in view.host["SecurityOpt"] or [] if one.startswith(prefix))


def _seccomp(value: Mapping[str, str], view: PodView) -> Compared:
    found = _options("seccomp", view)
    if value["type"] == "Localhost":
        return Compared([True], [option.startswith("seccomp={") for option in found])
    return Compared({"Unconfined": ["seccomp=unconfined"], "RuntimeDefault": []}[value["type"]], found)


def _se_linux(value: Mapping[str, str], view: PodView) -> Compared:
    return Compared(sorted(f"label={key}:{text}" for key, text in value.items()), _options("label", view))


def _hook(hook: str) -> Check:
    return lambda _, view: Compared("Succeeded", view.hooks.get((str(view.name), hook)))


def _future_hook(hook: str) -> Check:
    """Check that the hook has no outcome while the container is running."""
    return lambda _, view: Compared(None, view.hooks.get((str(view.name), hook)))


def _probe(name: str) -> Check:
    """Check that the container is probed with this definition, unless it never started."""

    def check(value: Any, view: PodView) -> Compared:
        if view.container["State"]["StartedAt"].startswith("0001-"):
            return Compared(None, None)
        return Compared(value, _restricted(view.probes.get((str(view.name), name), {}), value))

    return check


def _restricted(found: Any, wanted: Any) -> Any:
    """Return the found value, restricted to the keys of the wanted value."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {key: _restricted(found.get(key), value) for key, value in wanted.items()}
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [_restricted(one, other) for one, other in zip(found, wanted, strict=True)]
    return found


_FIRST_TO_BE_KILLED = 1000

_CONTAINER: Final[dict[str, Check]] = {
    "name": lambda value, view: Compared(value, view.name),
    "image": _image,
    "imagePullPolicy": _anything,  # the images are present, and separate tests cover each policy
    "command": _config("Entrypoint"),
    "args": _config("Cmd"),
    "workingDir": _config("WorkingDir"),
    "env": _environment,
    "ports": _ports,
    "volumeMounts": _mounts,
    "resources.limits.cpu": _cpu_limit,
    "resources.limits.memory": _memory_limit,
    "resources.requests.cpu": _cpu_request,
    # A request limits nothing, but a container that has one is not the first to be killed when memory runs out.
    "resources.requests.memory": lambda _, view: Compared(True, view.host["OomScoreAdj"] < _FIRST_TO_BE_KILLED),
    # Only sidecars may have a restart policy.
    "restartPolicy": lambda value, view: Compared(value == "Always", view.container["State"]["Running"]),
    "terminationMessagePath": lambda value, view: Compared(True, value in _targets(view)),
    "terminationMessagePolicy": _anything,  # has an effect only when the container ends
    "tty": _config("Tty"),
    "stdin": _config("OpenStdin"),
    "stdinOnce": _config("StdinOnce"),
    "securityContext.privileged": _host("Privileged"),
    "securityContext.capabilities": _capabilities,
    "securityContext.allowPrivilegeEscalation": _no_new_privileges,
    "securityContext.readOnlyRootFilesystem": _host("ReadonlyRootfs"),
    "securityContext.runAsUser": _user,
    "securityContext.runAsGroup": _group,
    "securityContext.runAsNonRoot": _not_root,
    "securityContext.seccompProfile": _seccomp,
    "securityContext.seLinuxOptions": _se_linux,
    "securityContext.appArmorProfile": _anything,  # the kernel may not support AppArmor
    "livenessProbe": _probe("Liveness"),
    "readinessProbe": _probe("Readiness"),
    "startupProbe": _probe("Startup"),
    "lifecycle.postStart": _hook("PostStart"),
    "lifecycle.preStop": _future_hook("PreStop"),
}

_PODS_RIGHTS = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions")


def _everywhere(key: str) -> Check:
    """Check each created container that does not set the value itself."""
    check = _CONTAINER[f"securityContext.{key}"]

    def everywhere(value: Any, view: PodView) -> Compared:
        made = [view._replace(container=one) for name, one in view.docker.items() if name != "POD"]
        compared = [check(value, one) for one in made if key not in _own_context(one)]
        return Compared([one.wanted for one in compared], [one.found for one in compared])

    return everywhere


def _own_context(view: PodView) -> Mapping[str, Any]:
    spec = view.manifest["spec"]
    every = [*spec.get("initContainers", []), *spec["containers"]]
    found: Mapping[str, Any] = next(one for one in every if one["name"] == view.name).get("securityContext", {})
    return found


def _groups(value: list[int], view: PodView) -> Compared:
    made = [one["HostConfig"]["GroupAdd"] or [] for name, one in view.docker.items() if name != "POD"]
    wanted = [str(group) for group in value]
    return Compared([wanted] * len(made), [[group for group in given if group in wanted] for given in made])


CHECKS: Final[dict[str, Check]] = {
    "apiVersion": _shown("apiVersion"),
    "kind": _shown("kind"),
    "metadata.name": _label("io.kubernetes.pod.name"),
    "metadata.namespace": _label("io.kubernetes.pod.namespace"),
    "metadata.labels": _shown("metadata", "labels"),
    "metadata.annotations": _shown("metadata", "annotations"),
    "metadata.creationTimestamp": _anything,  # written by an API server; this node writes a different one
    "status": _anything,  # written by an API server; this node writes a different one
    "spec.restartPolicy": _shown("spec", "restartPolicy", default="Always"),
    "spec.terminationGracePeriodSeconds": _shown("spec", "terminationGracePeriodSeconds", default=30),
    "spec.dnsPolicy": _shown("spec", "dnsPolicy", default="ClusterFirst"),
    "spec.enableServiceLinks": _shown("spec", "enableServiceLinks", default=True),
    "spec.imagePullSecrets": _anything,  # has an effect only at the registry, when an image is pulled
    "spec.volumes": _anything,  # checked through the mounts
    # The node rejects pods that do not match its labels, so a running pod shows the effect.
    "spec.nodeSelector": _anything,
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution": _anything,
    "spec.hostNetwork": _namespace("NetworkMode"),
    "spec.hostPID": _namespace("PidMode"),
    "spec.hostIPC": _namespace("IpcMode"),
    "spec.securityContext.supplementalGroups": _groups,
    **{f"spec.securityContext.{key}": _everywhere(key) for key in _PODS_RIGHTS},
    **{f"container.{path}": check for path, check in _CONTAINER.items()},
}
