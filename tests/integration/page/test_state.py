"""The page in a real browser: at every moment, its tables are what `chronolet get --at` prints."""

from collections.abc import Sequence

import pytest

from chronolet_schemas import pod
from tests.cli.support.busy_node import ADDED, LIVENESS, MINUTE, failed_probe
from tests.cli.support.histories import UID, accepted
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


def test_after_the_clock_was_set_back_each_moment_is_that_of_get_or_says_that_it_is_not(page: WrittenPage) -> None:
    """The server's clock is an hour ahead for two entries. Then entries follow that were recorded before these."""
    node = page.node
    begin = node.now
    node.now += 60 * MINUTE
    node.write("pod/default/ahead", accepted("ahead"))
    node.now += MINUTE
    node.write("pod/default/ahead", pod.PodEnded(pod="default/ahead", uid=UID))
    node.now = begin
    for name in ("c", "d", "e"):
        node.now += MINUTE
        node.write(f"pod/default/{name}", accepted(name))
    node.now += 2 * 60 * MINUTE
    page.write()
    page.open()
    for number in page.browser.run("[...page.state.model.number].slice(-6)"):
        page.go_to(f"#{number}")
        assert compared(page, f"#{number}") >= 4
    told = 0
    for minutes in (0, 1.5, 3, 60, 60.5, 61, 110):
        at = begin + round(minutes * MINUTE)
        page.go_to(f"@{at / 1_000}")
        assert compared(page, f"@{at / 1_000:.3f}") >= 4, "a time that is typed is found as --at finds it"
        page.slide(at)
        moment, caption = page.text("#moment"), page.text("#rows caption")
        if "by its position" in caption:
            told += 1
            assert f"after #{moment.rpartition('#')[2]}, by its position: the clock was set back" in caption
        else:
            assert compared(page, moment.partition(" ")[0]) >= 4
    assert told == 4


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("@1800000065", 65),
        ("@1800000065.5", 65.5),
        ("2027-01-15 08:01", 60),
        ("2027-01-15T08:01:05Z", 65),
        ("2027-01-15T09:01:05.25+01:00", 65.25),
        ("2027-01-15t10:01:05+0200", 65),
        ("8:01", 60),
        ("08:01:05.250", 65.25),
        ("10:01+02:00", 60),
        ("-9m", 60),
        ("-8m59.5s", 60.5),
    ],
)
def test_a_time_has_the_forms_of_at(page: WrittenPage, text: str, second: float) -> None:
    page.write()
    page.open()
    page.go_to(text)
    assert page.browser.run("page.state.moment.now") == NOON + second * 1_000
    assert page.text("#status").startswith("found") is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (text, f"found {text}, expected an event such as #1, or a time from 2027-01-15T08:00:00.000Z to 2027-")
        for text in (
            "#99999", "17-3", "soon", "", "-", "@", "0", "25:00", "2027-01-15", "2027-01-16", "2027-02-30 08:01",
            "2027-01-15 08:11", "-1h", "@1800000601", "Invalid Date", "T08:01",
        )
    ],
)  # fmt: skip
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
    page.node.write(LIVENESS, ADDED, failed_probe(2, page.node.now))
    page.write()
    page.open()
    [probe] = page.table("probe")
    assert probe[:4] == ["default", "web", "side", "Liveness"]
    assert probe[-1] == "no answer"
    [collector] = page.table("gc")
    assert collector[:2] == ["image_gc", "idle"]
