"""Reads the manifests that a command names, all of them, before anything is done with one.

Comes in: files, folders, `-` for standard input. Goes out: defaulted and valid pods, Secrets, what is to be said of
them; a Failure with one line for each error, naming file, path, found and expected. Next: `apply`, `delete`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from chronolet.cli.errors import Failure
from chronolet.ports.secrets import Secret
from chronolet_schemas.podspec import Finding, Pod

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


class Read:
    """What was found: (file, pod), (file, Secret), (file, finding)."""

    def __init__(self) -> None:
        self.pods: list[tuple[str, Pod]] = []
        self.secrets: list[tuple[str, Secret]] = []
        self.findings: list[tuple[str, Finding]] = []
        self.errors: list[str] = []


def read(names: Sequence[str], namespace: str, node: str = "") -> Read:
    """All manifests of these names; `namespace` is for pods that name none, `node` the one that a pod may name.

    Failure if any of them cannot be used, or one pod or Secret stands in two places.
    """
    from chronolet.adapters import manifest_files  # noqa: PLC0415 - YAML is slow to load

    found = Read()
    for file in _files(names):
        name = "standard input" if file == STDIN else file
        one = manifest_files.read_documents(_bytes(file, manifest_files.MAX_BYTES + 1), name, namespace=namespace)
        found.pods += [(name, _wanted(pod)) for pod in one.pods]
        found.secrets += [(name, secret) for secret in one.secrets]
        here = {pod.key for pod in one.pods if pod.spec.node_name == node}
        found.findings += [(name, said) for said in one.findings if not (said.pod in here and _is_node(said.path))]
        found.errors += [str(error) for error in one.errors]
    _expect_each_once(found)
    if found.errors:
        raise Failure(*found.errors)
    if not found.pods and not found.secrets:
        raise Failure(f"{', '.join(names)}: no Pod found, expected at least one v1 Pod (or Secret)")
    return found


def _is_node(path: str) -> bool:
    return path.endswith("spec.nodeName")


def _wanted(pod: Pod) -> Pod:
    """Without what a node writes about a pod, as `get -o yaml` shows it: that is nobody's wish."""
    metadata = msgspec.structs.replace(
        pod.metadata,
        uid="",
        self_link="",
        resource_version="",
        generation=0,
        creation_timestamp="",
        deletion_timestamp="",
        deletion_grace_period_seconds=None,
        managed_fields=(),
    )
    return msgspec.structs.replace(pod, metadata=metadata, spec=msgspec.structs.replace(pod.spec, node_name=""))


def _files(names: Sequence[str]) -> list[str]:
    files: list[str] = []
    for name in names:
        path = Path(name)
        if name == STDIN or not path.is_dir():
            files.append(name)
            continue
        inside = sorted(str(p) for p in path.iterdir() if _is_manifest(p))
        if not inside:
            raise Failure(f"{name}: no manifest in this folder, expected files that end with {', '.join(_SUFFIXES)}")
        files += inside
    return files


def _is_manifest(path: Path) -> bool:
    return path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file()


def _bytes(file: str, most: int) -> bytes:
    """What the file holds, no more than is needed to see that it holds too much."""
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(most)
        with Path(file).open("rb") as opened:
            return opened.read(most)
    except OSError as error:
        raise Failure(f"{file}: cannot be read: {error.strerror}") from error


def _expect_each_once(found: Read) -> None:
    places: dict[str, str] = {}
    named = [(file, f"pod {pod.key}") for file, pod in found.pods]
    for file, name in named + [(file, f"Secret {secret.key}") for file, secret in found.secrets]:
        if name in places:
            found.errors.append(f"{file}: {name}: stands in {places[name]} as well, expected it once")
        places.setdefault(name, file)
