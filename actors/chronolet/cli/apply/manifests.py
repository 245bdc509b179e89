"""Reads all manifests given to a command before the command acts on any of them.

Input: files, folders, URLs, `-` for standard input. Output: valid pods with defaults filled in, Secrets, and findings
about them; or a Failure whose lines each name a file, a path, what was found and what was expected. Next: `apply`,
`delete`.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from chronolet.cli.apply import downloads
from chronolet.cli.errors import Failure
from chronolet.ports.pods.secrets import Secret
from chronolet_schemas.podspec import Finding, Pod

Function = Callable[..., Any]
Download = Callable[[str, int], bytes]

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


class Read:
    """The content of the manifests: (file, pod), (file, Secret) and (file, finding) pairs, and errors."""

    def __init__(self) -> None:
        self.pods: list[tuple[str, Pod]] = []
        self.secrets: list[tuple[str, Secret]] = []
        self.findings: list[tuple[str, Finding]] = []
        self.errors: list[str] = []


class Files(NamedTuple):
    """The values of `-f` and `-R`."""

    names: tuple[str, ...] = ()
    recursive: bool = False

    def __bool__(self) -> bool:
        return bool(self.names)


def options(function: Function) -> Function:
    """Add `-f FILE`, `-R` and `-k FOLDER` to a command, which receives their values as the argument `files`.

    Using `-k` is an error whose message names an alternative.
    """

    @functools.wraps(function)
    def run(files: tuple[str, ...], recursive: bool, kustomize: str | None, **arguments: Any) -> Any:
        if kustomize is not None:
            raise click.UsageError(
                f"-k: chronolet does not build kustomizations: use `kustomize build {kustomize} | "
                f"{click.get_current_context().command_path} -f -`, or `kubectl kustomize` instead."
            )
        if recursive and not files:
            raise click.UsageError("-R requires -f FOLDER.")
        return function(files=Files(files, recursive), **arguments)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


_OPTIONS = (
    click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        metavar="FILE",
        help="file, directory, http(s) URL, or - for standard input",
    ),
    click.option("-R", "--recursive", is_flag=True, help="process the directory used in -f recursively"),
    click.option("-k", "--kustomize", metavar="FOLDER", help="not supported; prints an alternative"),
)


def read(files: Files, namespace: str, node: str = "", *, download: Download) -> Read:
    """Read all manifests in these files. Raises Failure if a file cannot be read or downloaded, if a manifest is
    invalid, if a pod or Secret occurs twice, if a folder contains no manifest, or if there is no pod and no Secret at
    all.

    `namespace`: for objects that specify none. `node`: the node name that a pod may specify without a finding.
    `download`: returns the first bytes of a URL.
    """
    from chronolet.adapters import manifest_files  # noqa: PLC0415 - YAML is slow to load

    found = Read()
    for file in _files(files):
        name = "standard input" if file == STDIN else downloads.shown(file) if downloads.is_url(file) else file
        one = manifest_files.read_documents(
            _bytes(file, manifest_files.MAX_BYTES + 1, download), name, namespace=namespace
        )
        found.pods += [(name, _wanted(pod)) for pod in one.pods]
        found.secrets += [(name, secret) for secret in one.secrets]
        here = {pod.key for pod in one.pods if pod.spec.node_name == node}
        found.findings += [(name, item) for item in one.findings if not (item.pod in here and _is_node(item.path))]
        found.errors += [str(error) for error in one.errors]
    _expect_each_once(found)
    if found.errors:
        raise Failure(*found.errors)
    if not found.pods and not found.secrets:
        raise Failure(f"{', '.join(files.names)}: no Pod found, expected at least one v1 Pod (or Secret)")
    return found


def _is_node(path: str) -> bool:
    return path.endswith("spec.nodeName")


def _wanted(pod: Pod) -> Pod:
    """Return the pod without the fields that a node fills in and `get -o yaml` prints: they are not desired state."""
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


def _files(given: Files) -> list[str]:
    found: list[str] = []
    for name in given.names:
        path = Path(name)
        if name == STDIN or downloads.is_url(name) or not path.is_dir():
            found.append(name)
            continue
        inside = sorted(str(p) for p in _inside(path, recursive=given.recursive) if _is_manifest(p))
        if not inside:
            where = "this folder or its subfolders" if given.recursive else "this folder"
            raise Failure(f"{name}: no manifest in {where}, expected files that end with {', '.join(_SUFFIXES)}")
        found += inside
    return found


def _inside(folder: Path, *, recursive: bool) -> Iterator[Path]:
    """Yield the folder's entries, or if `recursive` all files below the folder.

    The recursion skips hidden folders, and links to folders because they may form a cycle.
    """
    if not recursive:
        yield from folder.iterdir()
        return
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in files)


def _is_manifest(path: Path) -> bool:
    return path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file()


def _bytes(file: str, most: int, download: Download) -> bytes:
    """Return the file's first `most` bytes: enough to detect that the file is too large."""
    if downloads.is_url(file):
        return download(file, most)
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
            found.errors.append(f"{file}: {name}: also defined in {places[name]}, expected it once")
        places.setdefault(name, file)
