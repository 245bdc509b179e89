"""docs/pod-fields.md as text: what becomes of each field of a Pod, and of each manifest of the corpus.

Comes in: `fields` (the product's own table) and `expected` (what the tests of this folder find to be so). Goes out:
Markdown. Next: `write` puts it into docs/, `test_page` compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from chronolet_schemas.podspec import BLOCKING
from tests.corpus.expected import EXPECTED, Expectation, Refused
from tests.corpus.fields import Field, fields

PAGE = Path(__file__).parents[2] / "docs" / "pod-fields.md"
COMMAND = "python -m tests.corpus.write"

_GROUPS = ("containers", "initContainers", "ephemeralContainers")

_HEAD = f"""\
# Which fields of a Pod are honoured

Written by `{COMMAND}`; a test fails when it is out of date.

Every field of a v1 Pod, as Kubernetes 1.37 has it, stands in one of the tables below as one of these:

* **honoured**: it does what it does under a kubelet.
* **warning**: it does nothing here, and the pod runs nevertheless. `apply` and the agent's log say so, by the field's
  path; `apply --strict` refuses it.
* **blocks**: without it the pod would be another one than was asked for, so what it concerns does not start: the
  container waits with `CreateContainerConfigError`, and the message names the field. Other containers and pods go on.

*Only* names the values that are honoured where the others are not. A name or a number that Kubernetes itself refuses
is refused here as well, with its path, before anything is done.

A container without a word about seccomp runs under Docker's own filter, as under a kubelet with `seccompDefault`.

A container with `privileged: true` is made so. A node that lacks a capability itself cannot give it away: without
`CAP_SYS_RESOURCE`, as in many sandboxes, Docker does not start the container. It shows `RunContainerError`, then
`CrashLoopBackOff`, and its message ends with what the node lacks. That is the machine's limit, not a field that is not
honoured.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_field_sections(fields()), *_manifests(EXPECTED)])


# -- fields ------------------------------------------------------------------------------------------------------------


def _field_sections(every: Sequence[Field]) -> Iterator[str]:
    inside = tuple(f"spec.{group}[]." for group in _GROUPS)
    volumes = "spec.volumes[]."
    yield from _section("Pod", (one for one in every if not one.path.startswith((*inside, volumes))))
    yield from _containers(every)
    yield from _section(f"Volumes, in `{volumes.removesuffix('.')}`", _below(every, volumes))


def _section(title: str, chosen: Iterable[Field]) -> Iterator[str]:
    rows = [(f"`{one.path}`", stands(one), _message(one)) for one in chosen]
    yield from (f"## {title}", "", *_table(("field", "is", "why"), rows), "")


def _containers(every: Sequence[Field]) -> Iterator[str]:
    """The three sorts of containers side by side; a sort that is judged as a whole stands in the Pod's table."""
    groups = {group: {one.path: one for one in _below(every, f"spec.{group}[].")} for group in _GROUPS}
    shown = {group: found for group, found in groups.items() if found}
    paths = dict.fromkeys(path for found in shown.values() for path in found)
    first, *others = shown
    rows = []
    for path in paths:
        here = shown[first].get(path)
        cells = [_cell(shown[group].get(path), here) for group in others]
        row = [f"`{path}`", stands(here) if here else "no such field", *cells]
        rows.append((*row, _reasons([shown[group].get(path) for group in shown])))
    head = ("field", *(f"in `{group}`" for group in shown), "why")
    yield from ("## Containers", "", *_table(head, rows), "")


def _cell(one: Field | None, first: Field | None) -> str:
    if one is None:
        return "judged with the field above it"
    return "the same" if first is not None and stands(one) == stands(first) else stands(one)


def _reasons(given: Sequence[Field | None]) -> str:
    return "; ".join(dict.fromkeys(_message(one) for one in given if one is not None and _message(one)))


def _below(every: Iterable[Field], prefix: str) -> Iterator[Field]:
    for one in every:
        if one.path.startswith(prefix):
            yield Field(one.path.removeprefix(prefix), one.verdict, one.default)


def stands(one: Field) -> str:
    """`honoured`, or what the field does; and which of its values are honoured all the same."""
    if one.verdict.severity is None:
        return "honoured"
    word = "**blocks**" if one.verdict.severity == BLOCKING else "warning"
    values = honoured_values(one)
    return f"{word}; only {', '.join(f'`{value}`' for value in values)} honoured" if values else word


def honoured_values(one: Field) -> list[str]:
    """The values that are not reported: those that the table names, and the one that stands where none is given."""
    given = (one.default, *one.verdict.unless)
    shown = {_shown(value) for value in given if value is not None and value not in ("", (), {}, [])}
    # That nothing happens where `false` says that nothing shall is worth no word.
    return sorted(shown - {"false"})


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _message(one: Field) -> str:
    return one.verdict.message if one.verdict.severity is not None else ""


# -- manifests ---------------------------------------------------------------------------------------------------------


def _manifests(expected: dict[str, Expectation]) -> Iterator[str]:
    yield "## Manifests that people wrote"
    yield ""
    yield (
        "What becomes of 52 Pods from public repositories, with their images replaced by small ones that the test's\n"
        "machine has. Each is read, and all that are not refused are applied to one node, by `tests/corpus`."
    )
    yield ""
    rows = [(f"`{file}`", *_outcome(one)) for file, one in sorted(expected.items())]
    yield from _table(("manifest", "outcome", "fields"), rows)
    yield ""


def _outcome(one: Expectation) -> tuple[str, str]:
    if isinstance(one, Refused):
        return "refused", "; ".join(f"`{path}`: {gist}" for path, gist in one.problems.items())
    said = [f"`{path}` blocks" for path in one.blocks] + [f"`{path}` warning" for path in one.warns]
    return one.summary(), "; ".join(said)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    for row in rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |".replace("|  |", "| |")
