"""Finds the names in the events and states of a bundle: of pods, namespaces, nodes, images, containers and others.

Input: entries, the plain data of states. Output: `Names`, which gives each of them another one. Pure. Next:
`anonymising`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from chronolet_schemas.envelope import Entry

HEX = re.compile(
    r"(?:(?<=pod)|(?<![0-9A-Za-z]))"
    r"(?:[0-9a-f]{64}|[0-9a-f]{32}|(?=[0-9]{0,39}[a-f])(?:[0-9a-f]{40}|[0-9a-f]{24}|[0-9a-f]{16})|[0-9a-f]{12})(?![0-9A-Za-z])"
)
"""A hexadecimal id or digest. After `pod`: the name of a pod's cgroup."""
SHORT = 12
TAGGED = re.compile(r"(?P<repository>.+?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?")
_DIGITS = re.compile(r"[0-9.:-]+")

_HOST = re.compile(
    r"(?:://(?:[^/@\s]{0,200}@)?|\blookup )(?P<named>[A-Za-z0-9-][A-Za-z0-9.-]{0,252})"
    r"|(?<![A-Za-z0-9.-])(?P<dotted>[a-z][a-z0-9-]{0,62}\.(?:[a-z0-9-]{1,63}\.){1,20}[a-z]{2,20})"
    r"(?![A-Za-z0-9-]|\.[A-Za-z0-9])"
)
"""A host in a URL or in an error of a resolver, or three or more words with dots between them."""
_KNOWN_DOMAINS = ("kubernetes.io", "k8s.io", "chronolet")
_FIELDS_OF_PODS = ("spec.", "metadata.", "status.")
_NAMES: Mapping[str, str] = {
    "namespace": "namespace",
    "node": "node",
    "nodeName": "node",
    "hostname": "host",
    "subdomain": "host",
    "host": "host",
    "server": "host",
    "container": "container",
    "containerName": "container",
    "targetContainerName": "container",
    "image": "image",
    "reference": "image",
    "secretName": "secret",
    "claimName": "volume",
    "volumeName": "volume",
    "serviceAccountName": "account",
    "serviceAccount": "account",
    "priorityClassName": "class",
    "runtimeClassName": "class",
    "schedulerName": "scheduler",
    "generateName": "pod",
    "path": "path",
    "hostPath": "path",
    "host_path": "path",
    "mountPath": "path",
    "workingDir": "path",
    "socket": "path",
    "engine_root": "path",
    "former_engine_root": "path",
    "log_folder": "path",
    "engine_id": "engine",
    "former_engine_id": "engine",
    "uid": "uid",
    "machine_id": "machine",
    "system_uuid": "machine",
    "boot_id": "boot",
    "process": "process",
    "owner": "process",
    "former_owner": "process",
}
"""Fields that hold one name of this class. Paths count by their parts."""
_LISTS: Mapping[str, str] = {
    "containers": "container",
    "initContainers": "container",
    "ephemeralContainers": "container",
    "volumes": "volume",
    "volumeMounts": "volume",
    "imagePullSecrets": "secret",
    "devices": "device",
    "configMap": "volume",
    "configMapRef": "volume",
    "configMapKeyRef": "volume",
    "secretRef": "secret",
    "secretKeyRef": "secret",
    "metadata": "pod",
}
"""Fields whose objects have a `name` of this class."""
_LABELS = frozenset({"labels", "nodeSelector", "matchLabels"})
_TEXTS: Mapping[str, str] = {
    "hostnames": "host",
    "nameservers": "host",
    "searches": "host",
    "pull_secrets": "secret",
}
"""Fields with lists of names of this class, or with maps from them."""


class Names:
    """Every name found, with its replacement."""

    def __init__(self, vocabulary: frozenset[str]) -> None:
        self._vocabulary = vocabulary
        self._counts: dict[str, int] = {}
        self._aliases: dict[str, str] = {}
        self._found: dict[str, str] = {}
        self.short: set[str] = set()
        """The first twelve digits of hexadecimal ids, which stand for them in texts."""

    def add(self, class_: str, name: str) -> None:
        """Add a name of a class, such as `pod`."""
        if name and name not in self._vocabulary and _DIGITS.fullmatch(name) is None and not HEX.fullmatch(name):
            self._found.setdefault(name, class_)

    def images(self) -> Mapping[str, str]:
        """Return the images' repositories, with their replacements."""
        return {name: alias for name, alias in self.aliases().items() if self._found[name] == "image"}

    def aliases(self) -> Mapping[str, str]:
        """Return the replacement of each name. No replacement is a name that was found."""
        for name, class_ in self._found.items():
            while name not in self._aliases:
                self._counts[class_] = number = self._counts.get(class_, 0) + 1
                if (alias := f"{class_}-{number}") not in self._found:
                    self._aliases[name] = alias
        return self._aliases


def find(names: Names, entry: Entry) -> None:
    """Add the names in an entry."""
    kind, _, key = entry.entity.partition("/")
    if kind == "pod":
        _pair(names, key)
    elif kind == "node":
        names.add("node", key)
    elif kind == "prober" and key.count("/") >= _PROBER_PARTS:
        _pair(names, "/".join(key.split("/")[:2]))
    actor, _, name = entry.actor.partition("#")[0].partition("/")
    if actor == "process":
        names.add("process", name)
    data = decoded(entry.data)
    if entry.type.startswith("kube_events.Recorded@") and data.get("object_kind") in ("Pod", "Node"):
        names.add(str(data["object_kind"]).lower(), str(data.get("name", "")))
    find_in(names, data)


_PROBER_PARTS = 3


def find_in(names: Names, value: Any, key: str = "", class_: str = "") -> None:
    """Add the names in plain data. `class_`: the class of the `name` in it."""
    if isinstance(value, str):
        _find_in_text(names, value, key)
    elif isinstance(value, list | tuple):
        for item in value:
            find_in(names, item, key, class_)
    elif isinstance(value, dict):
        if class_ and isinstance(value.get("name"), str):
            names.add(class_, value["name"])
        if "health" in value:
            names.add("device", str(value.get("id", "")))
        if str(value.get("name")).lower() == "host" and isinstance(value.get("value"), str):
            names.add("host", value["value"].partition(":")[0])
        if key in _LABELS or key == "annotations":
            find_labels(names, value, "label" if key in _LABELS else "annotation")
        for name, held in value.items():
            _find_in_key(names, str(name), key)
            find_in(names, held, str(name), _LISTS.get(str(name), ""))


def _find_in_key(names: Names, name: str, map_: str) -> None:
    """Add the names in a key of the map that the field `map_` has."""
    if map_ in _TEXTS:
        names.add(_TEXTS[map_], name)
    elif map_ in ("pods", "secrets") and "/" in name:
        _pair(names, name, "pod" if map_ == "pods" else "secret")


def _find_in_text(names: Names, text: str, key: str) -> None:
    names.short.update(found[:SHORT] for found in HEX.findall(text) if len(found) > SHORT)
    for found in _HOST.finditer(text):
        host = (found["named"] or found["dotted"]).rstrip(".")
        if not host.startswith(_FIELDS_OF_PODS):
            names.add("host", host)
    if key in ("pod", "holder", "secret"):
        _pair(names, text, "secret" if key == "secret" else "pod")
    elif key in _TEXTS:
        names.add(_TEXTS[key], text)
    elif (key in ("names", "digest") and ("/" in text or ":" in text)) or (class_ := _NAMES.get(key)) == "image":
        add_image(names, text)
    elif class_ == "path":
        for part in re.split(r"[/:]", text):
            names.add("path", part)
            names.add("path", part.rpartition(".")[0])
    elif class_ is not None and "/" not in text:
        names.add(class_, text)


def _pair(names: Names, key: str, class_: str = "pod") -> None:
    namespace, slash, name = key.partition("/")
    names.add("namespace", namespace if slash else "")
    names.add(class_, name)


def add_image(names: Names, reference: str) -> None:
    """Add the repository in the reference of an image, and its host."""
    found = TAGGED.fullmatch(reference)
    if found is None or reference.startswith("sha256:"):
        return
    names.add("image", found["repository"])
    host, slash, _ = found["repository"].partition("/")
    if slash and ("." in host or ":" in host):
        names.add("host", host.partition(":")[0])


def find_labels(names: Names, labels: Mapping[Any, Any], class_: str) -> None:
    """Add the names of labels or annotations, and the values of labels."""
    for label, value in labels.items():
        prefix, slash, name = str(label).rpartition("/")
        if not prefix.endswith(_KNOWN_DOMAINS):
            names.add(class_, name)
            names.add("domain", prefix if slash else "")
        if isinstance(value, str) and class_ == "label":
            names.add("value", value)


def decoded(data: bytes) -> dict[str, Any]:
    """Return the data of an event as plain data; empty if it is not a map."""
    try:
        found = msgspec.msgpack.decode(data) if data else {}
    except (msgspec.DecodeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def all_names(vocabulary: frozenset[str], entries: Iterable[Entry], states: Sequence[Any]) -> Names:
    """Return the names in these entries and in the plain data of these states."""
    names = Names(vocabulary)
    for entry in entries:
        find(names, entry)
    for state in states:
        find_in(names, state)
        for key in _keys(state):
            _pair(names, key)
    return names


def _keys(state: Any) -> Iterator[str]:
    return (
        (key for key in state if isinstance(key, str) and key.count("/") == 1) if isinstance(state, dict) else iter(())
    )
