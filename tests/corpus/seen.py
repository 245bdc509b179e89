"""What of a manifest can be seen in Docker: for each field that is honoured, something must be there because of it.

Input: a `Look`: a Pod as its author wrote it, read by another parser than the product's; the pod as `get -o json`
shows it; Docker's own inspect of its containers. Output: one line for each field that shows nowhere, shows wrongly,
or that nobody here looks for. Next: `test_running` and the tests of this folder's own pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.corpus import looks
from tests.corpus.looks import Look


class Where(NamedTuple):
    """A place in a manifest: its path, the same without indices and with one word for all sorts of containers."""

    path: str
    pattern: str


_CONTAINERS = ("spec.containers", "spec.initContainers", "spec.ephemeralContainers")


def differences(look: Look, reported: Iterable[str] = ()) -> list[str]:
    """What cannot be seen. `reported` are paths of fields that are known not to be honoured. Fields of a container that
    was never made are not looked for.
    """
    return list(_below(look.manifest, Where("", ""), look, frozenset(reported)))


def _below(value: Any, where: Where, look: Look, reported: frozenset[str]) -> Iterator[str]:
    if where.path in reported:
        return
    check = looks.CHECKS.get(where.pattern)
    if check is not None:
        yield from _checked(check, value, where, look)
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from _below(held, _key(where, key), look, reported)
    elif isinstance(value, list):
        for index, held in enumerate(value):
            inside = _named(look, held) if where.pattern in _CONTAINERS else look
            if inside is not None:
                yield from _below(held, _item(where, index), inside, reported)
    else:
        yield f"{where.path}: {value!r}: nobody looks whether it does anything (tests/corpus/looks.py)"


def _checked(check: Callable[[Any, Look], looks.Compared], value: Any, where: Where, look: Look) -> Iterator[str]:
    compared = check(value, look)
    if compared.wanted != compared.found:
        yield f"{where.path}: wanted {compared.wanted!r}, found {compared.found!r}"


def _named(look: Look, container: Mapping[str, Any]) -> Look | None:
    """The look at one container, None if it was never made."""
    return look._replace(container=look.docker[container["name"]]) if container["name"] in look.docker else None


def _key(where: Where, key: str) -> Where:
    return Where(*(f"{one}.{key}" if one else key for one in where))


def _item(where: Where, index: int) -> Where:
    pattern = "container" if where.pattern in _CONTAINERS else where.pattern
    return Where(f"{where.path}[{index}]", pattern)
