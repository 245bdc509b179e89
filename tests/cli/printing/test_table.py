"""Tables: alignment, escaping, and growing columns."""

from hypothesis import given
from hypothesis import strategies as st

from chronolet.cli.printing import table
from chronolet.cli.printing.table import Growing

CELLS = st.text(max_size=12)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)))
def test_columns_are_aligned_and_each_row_is_one_line(rows: list[list[str]]) -> None:
    head = [f"H{index}" for index in range(len(rows[0]))]
    printed = table.lines(head, rows)
    assert len(printed) == len(rows) + 1
    assert all(line.isprintable() for line in printed)
    for index, name in enumerate(head[1:], 1):
        column = printed[0].index(name)
        for line, row in zip(printed[1:], rows, strict=True):
            assert line[column - 3 : column].strip() == ""
            assert line[column:].startswith(table.plain(row[index]).rstrip()[: len(line) - column])


def test_columns_of_a_growing_table_never_shrink_and_the_header_comes_with_the_first_row() -> None:
    table = Growing(("NAME", "B"))
    assert table.lines([]) == []
    assert table.lines([("a", "1")]) == ["NAME   B", "a      1"]
    assert table.lines([("longer", "1")]) == ["longer   1"]
    assert table.lines([("a", "1")]) == ["a        1"]
