"""The page in a real browser: at every moment, its tables are what `chronolet get --at` prints."""

from collections.abc import Sequence

import pytest

from chronolet_schemas import prober
from chronolet_schemas.podspec import Probe
from tests.cli.support.busy_node import LIVENESS, failed_probe
from tests.cli.support.histories import UID
from tests.cli.support.written_node import NOON, columns
from tests.integration.page.conftest import WrittenPage

TABLES = {
    "pod": ("get", "pods", "-A", "-o", "wide"),
    "container": ("get", "containers", "-A", "-o", "wide"),
    "device": ("get", "devices", "-o", "wide"),
    "image": ("get", "images"),
    "node": ("get", "nodes", "-o", "wide"),
}


def printed(page: WrittenPage, words: Sequence[str], at: str) -> list[list[str]]:
    result = page.node.run(*words, "--no-headers", "--at", at)
    assert result.status == 0, result
    return columns(result.output)


def shown(page: WrittenPage, table: str) -> list[list[str]]:
    return [[cell for cell in row if cell] for row in page.table(table)]


def compared(page: WrittenPage, at: str) -> int:
    rows = 0
    for table, words in TABLES.items():
        expected = printed(page, words, at)
        assert shown(page, table) == expected, (table, at)
        rows += len(expected)
    return rows


def test_the_state_after_each_entry_is_what_get_prints(page: WrittenPage) -> None:
    page.write()
    page.open()
    numbers: list[int] = page.browser.run("[...page.state.model.number]")
    rows = 0
    for number in numbers:
        page.go_to(f"#{number}")
        assert f"#{number}" in page.text("#moment")
        rows += compared(page, f"#{number}")
    assert rows > 5 * len(numbers) > 200


def test_the_slider_shows_the_state_at_a_time(page: WrittenPage) -> None:
    """The ages too: they count up to the time of the slider, not up to the last entry before it."""
    page.write()
    page.open()
    rows = 0
    for second in (0, 1, 30, 61, 64, 70, 75, 201, 215, 290, 345):
        page.slide(NOON + second * 1_000)
        rows += compared(page, f"@{NOON // 1_000 + second}")
    assert rows > 60


def test_a_page_of_a_part_of_the_log_has_the_same_states(page: WrittenPage) -> None:
    page.write("--from", f"@{NOON // 1_000 + 65}")
    page.open()
    for number in page.browser.run("[...page.state.model.number]"):
        page.go_to(f"#{number}")
        assert compared(page, f"#{number}") >= 4


@pytest.mark.parametrize(
    ("text", "said"),
    [("#99999", "found #99999, expected an event such as #1"), ("soon", "found soon, expected an event such as #1")],
)
def test_a_moment_that_the_page_does_not_have_is_a_message(page: WrittenPage, text: str, said: str) -> None:
    page.write()
    page.open()
    before = page.text("#moment")
    page.go_to(text)
    assert page.text("#status").startswith(said)
    assert page.text("#moment") == before


def test_the_head_of_a_table_is_that_of_get(page: WrittenPage) -> None:
    page.write()
    page.open()
    page.table("pod")
    [head] = columns(page.node.run("get", "pods", "-A", "-o", "wide", "--at", "-1s").output)[:1]
    assert page.browser.run("[...document.querySelectorAll('#rows th')].map(one => one.textContent)") == head


def test_the_probe_and_the_collector_have_rows(page: WrittenPage) -> None:
    added = prober.ProbeAdded(
        pod="default/web",
        uid=UID,
        container="side",
        probe="Liveness",
        definition=Probe(),
        restarts="Always",
        period_milliseconds=10_000,
        field="spec.containers{side}",
    )
    page.node.write(LIVENESS, added, failed_probe(2, page.node.now))
    page.write()
    page.open()
    [probe] = page.table("probe")
    assert probe[:4] == ["default", "web", "side", "Liveness"]
    assert probe[-1] == "no answer"
    [collector] = page.table("gc")
    assert collector[:2] == ["image_gc", "idle"]
