"""Generates docs/dependencies.md: every locked package with its version, licence and use.

Input: requirements/*.txt, which scripts/lock generates with uv, and the packages' own metadata. Output: the page on
standard output, or with --pins the locked packages and their hashes, without markers, so that all of them can be
installed and their metadata read. scripts/lock uses both forms; tests/setup/test_lock.py compares the page with the
lock files.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
# Lock file -> use. A package in several files belongs to the first one.
USES = {
    "runtime": "runtime",
    "embedded": "extra `embedded`",
    "otel": "extra `otel`",
    "s3": "extra `s3`",
    "build": "build",
    "dev": "development",
    "docs": "extra `docs`",
}
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>[^\\]+?))? \\")
ROOT_PACKAGE = "chronolet"
HEAD = """# Dependencies

Written by `scripts/lock` from `requirements/*.txt`, which pin every package by version and hash; `pyproject.toml` has
the bounds. Decided in [ADR 0023](adr/0023-dependencies-are-locked-by-hash.md). Linux only; one version for every Python
that `pyproject.toml` names. The licence is what the package itself states.

| package | version | licence | used for | required by |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Pin:
    """One package of a lock file. `marker` is empty if there is none. `hashes` have the form `sha256:...`. `via`: the
    packages that require it.
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    via: tuple[str, ...]


def pins(text: str) -> Iterator[Pin]:
    """Yield the packages of one lock file. Raises ValueError for an entry that is not pinned with hashes."""
    blocks = re.split(r"\n(?=[^ #\n])", text.strip())
    for block in blocks:
        found = PIN.match(block)
        if found is None:
            raise ValueError(f"not a pinned requirement with hashes: {block.splitlines()[0]!r}")
        via = [line.strip("# \t").removeprefix("via").strip() for line in block.splitlines() if "#" in line]
        yield Pin(
            name=found["name"],
            version=found["version"],
            marker=found["marker"] or "",
            hashes=tuple(re.findall(r"--hash=(\S+)", block)),
            via=tuple(_asker(line) for line in via if line and not line.startswith("-c ")),
        )


def _asker(via: str) -> str:
    return ROOT_PACKAGE if via.startswith((ROOT_PACKAGE, "-r ")) else via


def locked(folder: Path = REQUIREMENTS) -> dict[str, tuple[Pin, str]]:
    """Return the locked packages by name, each with its use. Raises ValueError if two files lock different versions."""
    found: dict[str, tuple[Pin, str]] = {}
    for name, use in USES.items():
        for pin in pins((folder / f"{name}.txt").read_text()):
            known, _ = found.setdefault(pin.name, (pin, use))
            if known.version != pin.version:
                raise ValueError(f"{pin.name}: locked as {known.version} and, in {name}.txt, as {pin.version}")
    return dict(sorted(found.items()))


def licence(metadata: Mapping[str, str], classifiers: Iterable[str]) -> str:
    """Return the licence that a package states: an SPDX expression, classifiers, or the first line of free text."""
    if expression := metadata.get("License-Expression"):
        return expression
    classified = [one.rsplit(" :: ", 1)[1] for one in classifiers if one.startswith("License :: ")]
    if classified and classified != ["OSI Approved"]:
        return ", ".join(classified)
    return (metadata.get("License") or "not stated").strip().splitlines()[0]


def licences(folder: Path) -> dict[str, str]:
    """Return the licences of the packages installed in this folder, by normalized name."""
    found = {}
    for one in importlib.metadata.distributions(path=[str(folder)]):
        headers = one.metadata
        wanted = {name: headers[name] for name in ("License-Expression", "License") if name in headers}
        found[normal(headers["Name"])] = licence(wanted, headers.get_all("Classifier") or ())
    return found


def normal(name: str) -> str:
    """Normalize a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def page(by_name: Mapping[str, tuple[Pin, str]], stated: Mapping[str, str]) -> str:
    """Return the content of docs/dependencies.md."""
    rows = [
        f"| {name} | {pin.version} | {stated[name]} | {use} | {', '.join(pin.via) or ROOT_PACKAGE} |\n"
        for name, (pin, use) in by_name.items()
    ]
    return HEAD + "".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Generates docs/dependencies.md. Called by scripts/lock.")
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--pins", action="store_true", help="print all locked packages, without markers")
    wanted.add_argument(
        "--packages", type=Path, metavar="DIR", help="print the page; DIR: folder in which the packages are installed"
    )
    given = parser.parse_args()
    by_name = locked()
    if given.pins:
        for pin, _ in by_name.values():
            print(f"{pin.name}=={pin.version}", *(f"--hash={one}" for one in pin.hashes))
        return
    stated = licences(given.packages)
    if missing := by_name.keys() - stated.keys():
        sys.exit(f"error: {given.packages}: not installed there: {', '.join(sorted(missing))}")
    print(page(by_name, stated), end="")


if __name__ == "__main__":
    main()
