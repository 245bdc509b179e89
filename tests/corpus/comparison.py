"""Compares a manifest with Docker: each honoured field must have its effect.

Input: a `PodView`: a Pod as its author wrote it, read by a parser other than the product's; the pod as `get -o json`
shows it; Docker's inspect of its containers. Output: one line for each field that has no effect, has a wrong effect, or
has no check. Next: `test_running` and the tests in `extra`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.corpus import docker_checks
from tests.corpus.docker_checks import PodView


class Where(NamedTuple):
    """A place in a manifest: its path, and its pattern: the path without indices, with one name for all container
    types.
    """

    path: str
    pattern: str


_CONTAINERS = ("spec.containers", "spec.initContainers", "spec.ephemeralContainers")


def differences(view: PodView, reported: Iterable[str] = ()) -> list[str]:
    """Return one line for each field that does not have its effect. `reported`: paths of fields that are not honoured.
    Fields of containers that do not exist are not checked.
    """
    return list(_below(view.manifest, Where("", ""), view, frozenset(reported)))


def _below(value: Any, where: Where, view: PodView, reported: frozenset[str]) -> Iterator[str]:
    if where.path in reported:
        return
    check = docker_checks.CHECKS.get(where.pattern)
    if check is not None:
        yield from _checked(check, value, where, view)
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from _below(held, _key(where, key), view, reported)
    elif isinstance(value, list):
        for index, held in enumerate(value):
            inside = _named(view, held) if where.pattern in _CONTAINERS else view
            if inside is not None:
                yield from _below(held, _item(where, index), inside, reported)
    else:
        yield f"{where.path}: {value!r}: no check of its effect (tests/corpus/docker_checks.py)"


def _checked(
    check: Callable[[Any, PodView], docker_checks.Compared], value: Any, where: Where, view: PodView
) -> Iterator[str]:
    compared = check(value, view)
    if compared.wanted != compared.found:
        yield f"{where.path}: expected {compared.wanted!r}, found {compared.found!r}"


def _named(view: PodView, container: Mapping[str, Any]) -> PodView | None:
    """Return the view of one container, or None if the container was never created."""
    return view._replace(container=view.docker[container["name"]]) if container["name"] in view.docker else None


def _key(where: Where, key: str) -> Where:
    return Where(*(f"{one}.{key}" if one else key for one in where))


def _item(where: Where, index: int) -> Where:
    pattern = "container" if where.pattern in _CONTAINERS else where.pattern
    return Where(f"{where.path}[{index}]", pattern)
