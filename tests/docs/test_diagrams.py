"""The committed diagrams match the transition tables in docstrings, and the tables match the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from chronolet.devices.state import ClaimPhase
from chronolet.pod import phases
from chronolet.pod.state import ContainerPhase, SandboxPhase
from chronolet_schemas import registry
from chronolet_schemas.envelope import Event
from scripts.diagrams import sequences, states, tables
from scripts.diagrams.__main__ import FOLDER, ROOT, drawings
from tests.golden.samples import all_classes

SUBJECTS = ("pod", "container", "sandbox", "claim", "probe", "shard", "sink")
"""The subjects whose phases docs/architecture.md shows."""
EVENTS = ("step", "takeover")
TABLES = {table.subject: table for table in tables.found(ROOT / "actors" / "chronolet")}
PHASES: Mapping[str, object] = {"container": ContainerPhase, "sandbox": SandboxPhase, "claim": ClaimPhase}
ALLOWED: Mapping[str, Mapping[type[Event], frozenset[str]]] = {"container": phases.CONTAINER, "sandbox": phases.SANDBOX}
SEQUENCES = {path.stem: sequences.parse(path.read_text()) for path in FOLDER.glob("*.txt")}


def classes_below(folder: Path) -> Mapping[str, str]:
    """Return the body of each class in a folder's modules, by class name.

    If several classes share a name, their bodies are concatenated.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = re.split(r"^class (\w+)", path.read_text(), flags=re.MULTILINE)
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            found[name] = found.get(name, "") + body
    return found


def has_member(body: str, name: str) -> bool:
    """Return whether a class defines a method or a field with this name."""
    return re.search(rf"^    (def )?{name}[(:]", body, re.MULTILINE) is not None


KERNEL = classes_below(ROOT / "actors" / "chronolet" / "kernel")


def test_every_subject_has_a_table() -> None:
    assert TABLES.keys() >= set(SUBJECTS)
    assert SEQUENCES.keys() >= set(EVENTS)


def test_committed_diagrams_are_current() -> None:
    committed = {path.name: path.read_text() for path in FOLDER.glob("*.svg")}
    assert committed == drawings(), "run `python -m scripts.diagrams` and commit docs/diagrams"


@pytest.mark.parametrize("name", [*SUBJECTS, *EVENTS])
def test_the_architecture_shows_the_diagram(name: str) -> None:
    assert f"(diagrams/{name}.svg)" in (ROOT / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize("subject", TABLES)
def test_events_of_a_table_exist(subject: str) -> None:
    named = {row.event for row in TABLES[subject].rows}
    registered = {cls.__name__ for cls in all_classes() if registry.type_of(cls)}
    assert named - (KERNEL.keys() if subject == "shard" else registered) == set()


@pytest.mark.parametrize("subject", PHASES)
def test_phases_of_a_table_are_those_of_the_state(subject: str) -> None:
    assert set(TABLES[subject].phases) == set(get_args(PHASES[subject]))


@pytest.mark.parametrize("subject", ALLOWED)
def test_a_table_allows_what_the_check_of_phases_allows(subject: str) -> None:
    rows = {(row.event, row.source) for row in TABLES[subject].rows if row.source != tables.NOTHING}
    assert rows == {(event.__name__, phase) for event, allowed in ALLOWED[subject].items() for phase in allowed}


@pytest.mark.parametrize("name", SEQUENCES)
def test_participants_and_calls_of_a_sequence_exist(name: str) -> None:
    sequence = SEQUENCES[name]
    assert set(sequence.participants) - KERNEL.keys() == set()
    arrows = [one for one in sequence.statements if isinstance(one, sequences.Arrow)]
    calls = {(one.target, call) for one in arrows for call in re.findall(r"(\w+)\(", one.text)}
    assert calls
    assert [f"{name}.{call}" for name, call in sorted(calls) if not has_member(KERNEL[name], call)] == []


def test_a_changed_table_changes_the_diagram() -> None:
    table = TABLES["sink"]
    fewer = tables.Table(table.subject, table.rows[:-1])
    assert states.draw(fewer) != states.draw(table)


DOCSTRING = """A module.

    lamp    event           to
    -       Bought          off
    off     Lit, Switched   on      a note
    on      Flickered       on

    other   columns         here

    phase     message or time      event, next phase
    no lamp   signals.Delivered    Bought -> off
    off       pod.Something        Lit -> on           (a note)
    on        an hour has passed   Flickered
    any       a power cut          WentOut -> off
    off       signals.Thrown       Broke -> no lamp
"""


def test_tables_are_read_from_docstrings() -> None:
    (table,) = tables.tables_of(DOCSTRING, Path("lamps/light.py"))
    assert table.subject == "lamp"
    assert table.phases == ("off", "on")
    assert table.rows == (
        tables.Row("-", "Bought", "off"),
        tables.Row("off", "Lit", "on", "a note"),
        tables.Row("off", "Switched", "on", "a note"),
        tables.Row("on", "Flickered", "on"),
    )


def test_a_table_of_messages_is_read_where_a_folder_names_its_subject() -> None:
    _, table = tables.tables_of(DOCSTRING, Path("bulbs/lifecycle.py"))
    assert table.subject == "bulb"
    assert table.rows == (
        tables.Row("-", "Bought", "off"),
        tables.Row("off", "Lit", "on", "(a note)"),
        tables.Row("on", "Flickered", "on"),
        tables.Row("off", "WentOut", "off"),
        tables.Row("on", "WentOut", "off"),
        tables.Row("off", "Broke", "-"),
    )


def test_a_row_without_a_target_is_refused() -> None:
    with pytest.raises(ValueError, match="expected three cells"):
        list(tables.tables_of("    lamp  event  to\n    off  Lit\n", Path("light.py")))


def test_a_second_table_of_a_subject_is_refused(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text('"""A module.\n\n    lamp  event  to\n    off  Lit  on\n"""\n')
    with pytest.raises(ValueError, match=r"two\.py: a second table of 'lamp', next to .*one\.py"):
        tables.found(tmp_path)


def test_edges_do_not_share_a_lane_where_they_meet() -> None:
    for table in TABLES.values():
        for side in states.sides_of(table):
            for one in side.edges:
                for other in side.edges:
                    apart = max(one.source, one.target) < min(other.source, other.target)
                    apart = apart or max(other.source, other.target) < min(one.source, one.target)
                    assert one is other or apart or side.lanes[one] != side.lanes[other], table.subject


def test_a_sequence_with_an_unknown_participant_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown participants \['Nobody'\]"):
        sequences.parse("title A\nHost, Store\nHost -> Nobody: step()\n")
