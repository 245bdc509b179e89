"""The pure scripts of the page, in a real browser, against Python's results and against the obvious slow way."""

import json
from typing import Any

import pytest

from chronolet.cli.printing import ages
from tests.integration.page.conftest import WrittenPage


@pytest.fixture(autouse=True)
def _opened(page: WrittenPage) -> None:
    page.write()
    page.open()


def run(page: WrittenPage, script: str, **given: Any) -> Any:
    """Run the body of a function with these values as its variables."""
    names = "".join(f"const {name} = {json.dumps(value)};" for name, value in given.items())
    return page.browser.run(f"(() => {{ {names} {script} }})()")


def test_ages_are_those_of_python(page: WrittenPage) -> None:
    bounds = [below * 1_000 for below, *_ in ages.STEPS] + [ages.YEAR * 1_000, 100 * ages.YEAR * 1_000]
    times = sorted(
        {-(10**9), -2_001, -2_000, -1_999, 0, *(at + near for at in bounds for near in (-1_000, -1, 0, 1, 61_000))}
    )
    found = run(page, "return times.map(one => age(one, page.state.model.summary.ages))", times=times)
    assert found == [ages.human(one) for one in times]


def test_bisection_finds_the_first_number_above(page: WrittenPage) -> None:
    numbers = [0, 0, 1, 3, 3, 3, 8]
    script = "return values.map(value => firstAbove(numbers, value))"
    values = [-1, 0, 1, 2, 3, 7, 8, 9]
    expected = [next((at for at, one in enumerate(numbers) if one > value), len(numbers)) for value in values]
    assert run(page, script, numbers=numbers, values=values) == expected
    script = "return values.map(value => firstAbove(numbers, value, 2, 5))"
    assert run(page, script, numbers=numbers, values=[-1, 1, 2, 3, 9]) == [2, 3, 3, 5, 5]


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 255, 256, 257, 4_500])
def test_levels_of_detail_have_the_greatest_number_of_any_range(page: WrittenPage, length: int) -> None:
    script = """
      let seed = 7;
      const next = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
      const numbers = Uint8Array.from({ length }, () => (next(40) ? next(2) : next(5)));
      const levels = new Levels(numbers);
      const wrong = [];
      for (let i = 0; i < 3000; i++) {
        const low = next(length + 1), high = low + next(length - low + 1);
        const expected = numbers.subarray(low, high).reduce((one, other) => Math.max(one, other), 0);
        if (levels.max(low, high) !== expected) wrong.push([low, high, expected, levels.max(low, high)]);
      }
      return wrong;
    """
    assert run(page, script, length=length) == []


def test_a_long_list_reaches_each_row_although_its_element_is_shorter(page: WrittenPage) -> None:
    """Two million rows are higher than any browser allows. The end, the beginning and single rows are still reached."""
    script = """
      const position = new ScrollPosition();
      Object.assign(position, { rows: 2000000, rowHeight: 24, view: 480 });
      const seen = [position.height, position.offset];
      position.scrolled(position.mostTop);
      seen.push(position.offset);
      position.scrolled(position.mostTop - 30);
      seen.push(position.offset);
      position.reveal(1000000);
      seen.push(position.offset, Math.abs(position.top - position.mostTop / 2) < 20);
      position.scrolled(position.top + 24);
      seen.push(position.offset);
      position.scrolled(position.mostTop * 0.25);
      seen.push(Math.abs(position.offset - position.mostOffset * 0.25) < 1);
      position.scrolled(0);
      seen.push(position.offset);
      return seen;
    """
    end = 48_000_000 - 480
    middle = 24_000_000 - 240
    assert run(page, script) == [8_000_000, 0, end, end - 30, middle, True, middle + 24, True, 0]


def test_a_window_of_time_stays_within_the_page(page: WrittenPage) -> None:
    script = """
      const window = new TimeWindow(1000, 2000);
      const seen = [];
      const note = () => seen.push([Math.round(window.from), Math.round(window.to)]);
      window.zoom(2, 1500); note();
      window.move(-9999); note();
      window.move(9999); note();
      window.include(1100); note();
      window.zoom(0.001, 1100); note();
      window.zoom(1e9, 1250); note();
      return seen;
    """
    first, *rest = run(page, script)
    assert first == [1250, 1750]
    assert rest[:4] == [[1000, 1500], [1500, 2000], [1000, 1500], [1000, 2000]]
    assert rest[4][1] - rest[4][0] == 10
    assert rest[4][0] <= 1250 <= rest[4][1]


def test_each_pixel_of_a_lane_has_the_worst_of_its_rows_and_events(page: WrittenPage) -> None:
    """Against the slow way: every row and every event, pixel by pixel, in windows of many lengths."""
    script = """
      const { model, window } = page.state;
      const drawing = new Drawing(model, window);
      const width = 97, wrong = [];
      const box = { top: 0, height: 24, width };
      const none = () => new Array(width).fill(0);
      const note = (pixels, x, value) => { pixels[x] = Math.max(pixels[x], Number(value)) };
      const pixelOf = (index) => Math.floor(window.x(model.milliseconds[index], width));
      const compare = (what, drawn, expected) => {
        if (String(drawn) !== String(expected)) wrong.push([what, String(drawn), String(expected)]);
      };
      drawing.colours.look = [0, 1, 2, 3, 4];
      drawing.colours.severity = [1, 2, 3];
      for (let zoom = 0; zoom < 40; zoom++) {
        const from = window.first + zoom * 9000;
        window.set(from, from + (window.last - window.first) / (1 + zoom * zoom));
        for (let object = 0; object < model.objects; object++) {
          const { table, number } = model.tableOf(object);
          const bars = none(), ticks = none(), rows = none(), events = none();
          const fillBar = function (x, _, w) {
            for (let at = x; at < Math.min(width, x + w); at++) note(bars, at, this.fillStyle);
          };
          drawing.rows({ fillRect: fillBar }, object, box);
          drawing.ticks({ fillRect(x) { note(ticks, x, this.fillStyle) } }, object, box);
          for (let row = table.start[number]; row < table.start[number + 1]; row++) {
            const at = (one) => (table.begin[one] ? pixelOf(table.begin[one] - 1) : 0);
            const first = Math.max(0, at(row)), end = row + 1 < table.start[number + 1] ? at(row + 1) : width;
            if (end < 0) continue;
            // A row that is shorter than a pixel still has that pixel.
            for (let x = first; x < Math.min(width, Math.max(end, first + 1)); x++) note(rows, x, table.look[row]);
          }
          for (let i = 0; i < model.count; i++) {
            const x = pixelOf(i);
            if (model.about[i] === object && x >= 0 && x < width) note(events, x, 1 + model.severity[i]);
          }
          compare(["rows", zoom, object], bars, rows);
          compare(["events", zoom, object], ticks, events);
        }
      }
      return [model.objects, wrong.slice(0, 3)];
    """
    objects, wrong = run(page, script)
    assert objects > 10
    assert wrong == []


def test_the_ticks_of_the_axis_are_round_and_not_too_close(page: WrittenPage) -> None:
    script = "return spans.map(one => [tickDistance(one), tickText(1795821491030, tickDistance(one))])"
    found = run(page, script, spans=[1, 3, 900, 50_000, 3_000_000, 80_000_000, 10**12])
    assert found == [
        [1, "23:18:11.030"],
        [5, "23:18:11.030"],
        [1_000, "23:18:11"],
        [60_000, "23:18"],
        [3_600_000, "23:18"],
        [86_400_000, "2026-11-27"],
        [31_536_000_000, "2026-11-27"],
    ]
