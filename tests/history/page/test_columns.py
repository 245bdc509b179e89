"""Columns, dictionaries and tables of the page: what was added is what a reader finds."""

import base64
import json
import struct
import zlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chronolet.history.page.columns import Column, Dictionary, Differences, Part
from chronolet.history.page.entry_columns import BLOCK, EntryColumns
from chronolet.history.page.tables import TableColumns
from chronolet.history.page.viewing import Look, Row, Severity, Table
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.times import with_time

TABLE = Table("pod", "Pods", ("NAME", "STATUS"))


def unpacked(part: Part) -> bytes:
    return zlib.decompress(base64.b64decode(part.data))


def numbers(part: Part) -> list[float]:
    data, code = unpacked(part), {"u8": "B", "u32": "I", "f64": "d"}[part.type]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))


def found_in(table: TableColumns) -> dict[str, Any]:
    return {one.name: json.loads(unpacked(one)) if one.type == "json" else numbers(one) for one in table.parts()}


def row(status: str, look: Look = Look.GOOD) -> Row:
    return Row((("web",), (status,)), look)


@given(st.lists(st.integers(0, 2**53 - 1)))
def test_a_column_keeps_numbers_up_to_the_largest_of_a_browser(values: list[int]) -> None:
    column, differences = Column("a", "f64"), Differences("b")
    for value in values:
        column.add(value)
        differences.add(value)
    assert numbers(column.part()) == values
    sums = [int(sum(numbers(differences.part())[: end + 1])) for end in range(min(3, len(values)))]
    assert sums == values[:3]


def test_a_column_is_packed_in_another_order() -> None:
    column = Column("a", "u32")
    for value in (7, 8, 9):
        column.add(value)
    assert numbers(column.part((2, 0, 1))) == [9, 7, 8]


def test_a_dictionary_numbers_values_in_order_of_first_use() -> None:
    dictionary: Dictionary[str] = Dictionary()
    assert [dictionary.number(value) for value in ("b", "a", "b", "c")] == [0, 1, 0, 2]
    assert dictionary.values() == ["b", "a", "c"]


def test_the_rows_of_an_object_are_consecutive_and_oldest_first() -> None:
    table = TableColumns(TABLE)
    table.set("b", row("Pending", Look.WAITING), 0)
    table.set("a", row("Running"), 3)
    table.set("b", row("Running"), 5)
    table.set("b", None, 8)
    found = found_in(table)
    assert found["pod.objects"] == ["b", "a"]
    assert found["pod.start"] == [0, 3, 4]
    assert found["pod.begin"] == [0, 5, 8, 3]
    assert found["pod.look"] == [Look.WAITING, Look.GOOD, Look.GONE, Look.GOOD]
    words = found["pod.1.words"]
    assert [words[int(one)] for one in found["pod.1"]] == [["Pending"], ["Running"], [], ["Running"]]


def test_an_equal_row_is_not_stored_again_but_a_row_after_the_end_is() -> None:
    table = TableColumns(TABLE)
    for begin, one in enumerate((row("Running"), row("Running"), None, None, row("Running"))):
        table.set("a", one, begin)
    assert found_in(table)["pod.begin"] == [0, 2, 4]


def test_an_object_without_rows_has_a_name_and_no_rows() -> None:
    table = TableColumns(TABLE)
    assert table.number("lost") == 0
    table.set("a", row("Running"), 1)
    found = found_in(table)
    assert (found["pod.objects"], found["pod.start"], found["pod.begin"]) == (["lost", "a"], [0, 0, 1], [1])


def entry(n: int, cause: str = "", data: bytes = b"\x80") -> Entry:
    return Entry(Position(1_000 + n, n), f"pod.T{n % 2}@1", "pod/default/web", "", "pod#1", cause, data)


def test_entries_are_kept_in_columns_and_their_texts_in_blocks() -> None:
    entries = EntryColumns()
    for n in range(1, BLOCK + 3):
        entries.add(entry(n), 0, 0, Severity.NORMAL, f"text {n}")
    found = {one.name: one for one in entries.parts()}
    assert numbers(found["entry.number"]) == [1] * (BLOCK + 2)
    assert numbers(found["entry.milliseconds"])[:3] == [1_001, 1, 1]
    assert json.loads(unpacked(found["entry.type.words"])) == ["pod.T1@1", "pod.T0@1"]
    first, second = entries.blocks()
    assert (first.name, second.name) == ("text.0", "text.1")
    assert unpacked(first).decode().split("\n")[:2] == ["text 1", "text 2"]
    assert unpacked(second).decode() == f"text {BLOCK + 1}\ntext {BLOCK + 2}"


def test_the_cause_is_a_distance_and_only_if_it_is_an_earlier_entry() -> None:
    entries = EntryColumns()
    for cause in ("", "1003-3", "request-7", "1009-9", "x", "1-2-3"):
        entries.add(entry(5, cause), 0, 0, Severity.NORMAL, "", cause=cause.upper())
    found = {one.name: one for one in entries.parts()}
    assert numbers(found["entry.cause"]) == [0, 2, 0, 0, 0, 0]
    assert json.loads(unpacked(found["entry.origin.words"])) == ["", "REQUEST-7", "1009-9", "X", "1-2-3"]
    assert numbers(found["entry.origin"]) == [0, 0, 1, 2, 3, 4], "a cause is stored only once"


def test_the_time_of_an_entry_is_behind_that_of_its_position_if_the_clock_was_ahead() -> None:
    entries = EntryColumns()
    entries.add(entry(5, data=with_time(b"\x80", 900)), 0, 0, Severity.NORMAL, "")
    entries.add(entry(6), 0, 0, Severity.NORMAL, "")
    found = {one.name: one for one in entries.parts()}
    assert numbers(found["entry.behind"]) == [105, 0]
