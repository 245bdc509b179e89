"""Where a field of a Pod shows in Docker: what is wanted there because of it, and what is found.

Input: the field's value, a `Look`. Output: `Compared`. Next: `seen` walks a manifest with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import PurePath
from typing import Any, Final, NamedTuple


class Look(NamedTuple):
    """One pod in three views, and the container that is looked at."""

    manifest: Mapping[str, Any]
    pod: Mapping[str, Any]
    docker: Mapping[str, Any]
    hooks: Mapping[tuple[str, str], str] = {}
    """(container, hook) -> how it ended."""
    probes: Mapping[tuple[str, str], Mapping[str, Any]] = {}
    """(container, Liveness and so on) -> how it is probed, every field written out."""
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
    """They should be equal."""

    wanted: Any
    found: Any


Check = Callable[[Any, Look], Compared]

_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def amount(text: Any) -> Fraction:
    """A quantity such as `100m` or `64Mi`."""
    digits = str(text).rstrip("mkKMGi")
    unit = str(text)[len(digits) :]
    return Fraction(digits) / 1000 if unit == "m" else Fraction(digits) * _UNITS[unit]


def _shown(*path: str, default: Any = None) -> Check:
    """The same as in the pod that `get` shows, which leaves out defaults: for what has no counterpart in Docker."""

    def check(value: Any, look: Look) -> Compared:
        found: Any = look.pod
        for key in path[:-1]:
            found = found[key]
        return Compared(value, found.get(path[-1], default))

    return check


def _label(name: str) -> Check:
    return lambda value, look: Compared(value, look.sandbox["Config"]["Labels"].get(name))


def _config(name: str) -> Check:
    return lambda value, look: Compared(value, look.config[name])


def _host(name: str) -> Check:
    return lambda value, look: Compared(value, look.host[name])


def _namespace(mode: str) -> Check:
    """A namespace of the node's, held by the sandbox."""
    return lambda value, look: Compared("host" if value else None, look.sandbox["HostConfig"][mode] or None)


def _anything(_: Any, __: Look) -> Compared:
    return Compared(None, None)


# -- containers --------------------------------------------------------------------------------------------------------


def _image(value: str, look: Look) -> Compared:
    shown = {one["name"]: one for one in _statuses(look)}[look.name]
    return Compared((value, look.container["Image"]), (shown["image"], shown["imageID"].rpartition("//")[2]))


def _statuses(look: Look) -> list[Any]:
    status = look.pod["status"]
    return [*status.get("initContainerStatuses", []), *status["containerStatuses"]]


def _environment(value: list[Mapping[str, Any]], look: Look) -> Compared:
    given = look.config["Env"]
    wanted = [f"{one['name']}={_value(one, look)}" for one in value]
    return Compared(wanted, [one for one in wanted if one in given])


def _value(variable: Mapping[str, Any], look: Look) -> str:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    source = variable["valueFrom"]
    if "resourceFieldRef" in source:
        return _amount_of(source["resourceFieldRef"], look)
    metadata = look.pod["metadata"]
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": look.pod["spec"]["nodeName"],
        "spec.serviceAccountName": look.manifest["spec"].get("serviceAccountName", ""),
        "status.podIP": look.pod["status"].get("podIP"),
    }
    return str(fields[source["fieldRef"]["fieldPath"]])


def _amount_of(reference: Mapping[str, str], look: Look) -> str:
    """In units of the divisor, rounded up; what is referred to is written in the manifest."""
    name = reference.get("containerName", look.name)
    container = next(one for one in look.manifest["spec"]["containers"] if one["name"] == name)
    side, _, resource = reference["resource"].partition(".")
    return str(math.ceil(amount(container["resources"][side][resource]) / amount(reference.get("divisor", "1"))))


def _ports(value: list[Mapping[str, Any]], look: Look) -> Compared:
    """Published where there is a host port, and only there."""
    bindings = look.sandbox["HostConfig"]["PortBindings"] or {}
    wanted = {
        f"{one['containerPort']}/{one.get('protocol', 'TCP').lower()}": str(one["hostPort"])
        for one in value
        if "hostPort" in one
    }
    all_ports = {f"{one['containerPort']}/{one.get('protocol', 'TCP').lower()}" for one in value}
    return Compared(wanted, {key: held[0]["HostPort"] for key, held in bindings.items() if key in all_ports})


def _mounts(value: list[Mapping[str, Any]], look: Look) -> Compared:
    found = {one["Destination"]: (_source(one["Source"], look), not one["RW"]) for one in look.container["Mounts"]}
    wanted = {one["mountPath"].rstrip("/"): _wanted(one, look) for one in value}
    return Compared(wanted, {target: found.get(target) for target in wanted})


def _targets(look: Look) -> list[str]:
    return [one["Destination"] for one in look.container["Mounts"]]


def _wanted(mount: Mapping[str, Any], look: Look) -> tuple[str, bool]:
    """Where it comes from, and whether it is only read: what the agent writes itself always is."""
    volume = next(one for one in look.manifest["spec"]["volumes"] if one["name"] == mount["name"])
    source = str(volume["hostPath"]["path"]) if "hostPath" in volume else "the pod's own"
    return source, mount.get("readOnly", False) or "downwardAPI" in volume


def _source(path: str, look: Look) -> str:
    return "the pod's own" if look.pod["metadata"]["uid"] in PurePath(path).parts else path


def _cpu_limit(value: Any, look: Look) -> Compared:
    return Compared(amount(value), Fraction(look.host["CpuQuota"], look.host["CpuPeriod"]))


def _cpu_request(value: Any, look: Look) -> Compared:
    return Compared(int(amount(value) * 1024), look.host["CpuShares"])


def _memory_limit(value: Any, look: Look) -> Compared:
    return Compared(amount(value), look.host["Memory"])


def _capabilities(value: Mapping[str, list[str]], look: Look) -> Compared:
    found = {"add": look.host["CapAdd"] or [], "drop": look.host["CapDrop"] or []}
    plain = {key: sorted(one.removeprefix("CAP_") for one in held) for key, held in found.items()}
    return Compared({key: sorted(held) for key, held in value.items()}, {key: plain[key] for key in value})


def _no_new_privileges(value: bool, look: Look) -> Compared:
    options = [one.removesuffix(":true") for one in look.host["SecurityOpt"] or []]
    return Compared(not value, "no-new-privileges" in options)


def _user(value: int, look: Look) -> Compared:
    return Compared(str(value), look.config["User"].partition(":")[0])


def _group(value: int, look: Look) -> Compared:
    return Compared(str(value), look.config["User"].partition(":")[2])


def _not_root(value: bool, look: Look) -> Compared:
    return Compared(value, look.config["User"].partition(":")[0] not in ("", "0"))


def _options(prefix: str, look: Look) -> list[str]:
    return sorted(one for one in look.host["SecurityOpt"] or [] if one.startswith(prefix))


def _seccomp(value: Mapping[str, str], look: Look) -> Compared:
    found = _options("seccomp", look)
    if value["type"] == "Localhost":
        return Compared([True], [option.startswith("seccomp={") for option in found])
    return Compared({"Unconfined": ["seccomp=unconfined"], "RuntimeDefault": []}[value["type"]], found)


def _se_linux(value: Mapping[str, str], look: Look) -> Compared:
    return Compared(sorted(f"label={key}:{text}" for key, text in value.items()), _options("label", look))


def _hook(hook: str) -> Check:
    return lambda _, look: Compared("Succeeded", look.hooks.get((str(look.name), hook)))


def _hook_to_come(hook: str) -> Check:
    """Nothing of it while the container runs."""
    return lambda _, look: Compared(None, look.hooks.get((str(look.name), hook)))


def _probe(name: str) -> Check:
    """It is probed just so, if it ever ran."""

    def check(value: Any, look: Look) -> Compared:
        if look.container["State"]["StartedAt"].startswith("0001-"):
            return Compared(None, None)
        return Compared(value, _restricted(look.probes.get((str(look.name), name), {}), value))

    return check


def _restricted(found: Any, wanted: Any) -> Any:
    """What is found, as far as it is asked for."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {key: _restricted(found.get(key), value) for key, value in wanted.items()}
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [_restricted(one, other) for one, other in zip(found, wanted, strict=True)]
    return found


_FIRST_TO_BE_KILLED = 1000

_CONTAINER: Final[dict[str, Check]] = {
    "name": lambda value, look: Compared(value, look.name),
    "image": _image,
    "imagePullPolicy": _anything,  # the images are there, and each policy has tests of its own
    "command": _config("Entrypoint"),
    "args": _config("Cmd"),
    "workingDir": _config("WorkingDir"),
    "env": _environment,
    "ports": _ports,
    "volumeMounts": _mounts,
    "resources.limits.cpu": _cpu_limit,
    "resources.limits.memory": _memory_limit,
    "resources.requests.cpu": _cpu_request,
    # It holds nobody to anything, but who asks for some is not the first to be killed when there is none left.
    "resources.requests.memory": lambda _, look: Compared(True, look.host["OomScoreAdj"] < _FIRST_TO_BE_KILLED),
    # Of a sidecar; nothing else may have one.
    "restartPolicy": lambda value, look: Compared(value == "Always", look.container["State"]["Running"]),
    "terminationMessagePath": lambda value, look: Compared(True, value in _targets(look)),
    "terminationMessagePolicy": _anything,  # seen once it has ended
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
    "securityContext.appArmorProfile": _anything,  # the kernel may have none
    "livenessProbe": _probe("Liveness"),
    "readinessProbe": _probe("Readiness"),
    "startupProbe": _probe("Startup"),
    "lifecycle.postStart": _hook("PostStart"),
    "lifecycle.preStop": _hook_to_come("PreStop"),
}

_PODS_RIGHTS = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions")


def _everywhere(key: str) -> Check:
    """In each container that was made and does not say otherwise itself."""
    check = _CONTAINER[f"securityContext.{key}"]

    def everywhere(value: Any, look: Look) -> Compared:
        made = [look._replace(container=one) for name, one in look.docker.items() if name != "POD"]
        compared = [check(value, one) for one in made if key not in _own_context(one)]
        return Compared([one.wanted for one in compared], [one.found for one in compared])

    return everywhere


def _own_context(look: Look) -> Mapping[str, Any]:
    spec = look.manifest["spec"]
    every = [*spec.get("initContainers", []), *spec["containers"]]
    found: Mapping[str, Any] = next(one for one in every if one["name"] == look.name).get("securityContext", {})
    return found


def _groups(value: list[int], look: Look) -> Compared:
    made = [one["HostConfig"]["GroupAdd"] or [] for name, one in look.docker.items() if name != "POD"]
    wanted = [str(group) for group in value]
    return Compared([wanted] * len(made), [[group for group in given if group in wanted] for given in made])


CHECKS: Final[dict[str, Check]] = {
    "apiVersion": _shown("apiVersion"),
    "kind": _shown("kind"),
    "metadata.name": _label("io.kubernetes.pod.name"),
    "metadata.namespace": _label("io.kubernetes.pod.namespace"),
    "metadata.labels": _shown("metadata", "labels"),
    "metadata.annotations": _shown("metadata", "annotations"),
    "metadata.creationTimestamp": _anything,  # written by a server once; this node writes its own
    "status": _anything,  # the same
    "spec.restartPolicy": _shown("spec", "restartPolicy", default="Always"),
    "spec.terminationGracePeriodSeconds": _shown("spec", "terminationGracePeriodSeconds", default=30),
    "spec.dnsPolicy": _shown("spec", "dnsPolicy", default="ClusterFirst"),
    "spec.enableServiceLinks": _shown("spec", "enableServiceLinks", default=True),
    "spec.imagePullSecrets": _anything,  # seen by a registry, when an image is pulled
    "spec.volumes": _anything,  # seen where they are mounted
    # The node rejects who does not match its labels: that it runs is all there is to see.
    "spec.nodeSelector": _anything,
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution": _anything,
    "spec.hostNetwork": _namespace("NetworkMode"),
    "spec.hostPID": _namespace("PidMode"),
    "spec.hostIPC": _namespace("IpcMode"),
    "spec.securityContext.supplementalGroups": _groups,
    **{f"spec.securityContext.{key}": _everywhere(key) for key in _PODS_RIGHTS},
    **{f"container.{path}": check for path, check in _CONTAINER.items()},
}
