"""The page in a real browser, on a phone, in the dark, and with the mouse."""

from typing import Any

from tests.cli.support.written_node import NOON
from tests.integration.page.conftest import WrittenPage


def box(page: WrittenPage, selector: str) -> dict[str, float]:
    found: dict[str, float] = page.browser.run(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")
    return found


def mouse(page: WrittenPage, kind: str, x: float, y: float, **more: Any) -> None:
    page.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


def window(page: WrittenPage) -> tuple[float, float]:
    begin, end = page.browser.run("[page.state.window.from, page.state.window.to]")
    return begin, end


def test_a_phone_has_room_for_everything_and_fingers(page: WrittenPage) -> None:
    page.write()
    page.browser.size(360, 740, phone=True)
    page.open()
    assert page.browser.run("document.documentElement.scrollWidth") == 360
    for tab in ("#tab-state", "#tab-entries", "#tab-object"):
        page.click(tab)
        assert box(page, '[role="tabpanel"]:not([hidden])')["height"] > 100
        assert box(page, "#lanes")["height"] > 200
        small = page.browser.run(
            "[...document.querySelectorAll('button, select, input[type=\"search\"], #go-to, .label, .entry')]"
            ".filter(one => one.offsetParent && !one.closest('td'))"
            ".filter(one => one.getBoundingClientRect().height < 35).map(one => one.id || one.className)"
        )
        assert small == []
    assert page.browser.run("document.documentElement.scrollHeight") > 740, "the page scrolls as a whole"


def test_on_a_phone_an_event_has_a_line_for_its_text(page: WrittenPage) -> None:
    page.write()
    page.browser.size(360, 740, phone=True)
    page.open()
    page.click("#tab-entries")
    row = box(page, '.entry[aria-selected="true"]')
    detail = box(page, '.entry[aria-selected="true"] .detail')
    assert row["height"] == 48
    assert detail["top"] >= box(page, '.entry[aria-selected="true"] .type')["bottom"]
    assert detail["bottom"] <= row["bottom"]
    assert detail["width"] > 300
    page.browser.size(1200, 800)
    page.browser.run(
        "new Promise(done => { const look = () => document.querySelector('.entry')"
        "?.getBoundingClientRect().height === 24 ? done() : setTimeout(look, 20); look() })"
    )


def touch(page: WrittenPage, kind: str, *points: tuple[float, float]) -> None:
    page.browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])


def test_two_fingers_zoom_and_one_moves_the_time(page: WrittenPage) -> None:
    page.write()
    page.browser.size(360, 740, phone=True)
    page.open()
    canvas = box(page, "#lane-canvas")
    middle, y = canvas["left"] + canvas["width"] / 2, canvas["top"] + 50
    whole = window(page)
    touch(page, "touchStart", (middle - 20, y), (middle + 20, y))
    for step in range(1, 6):
        touch(page, "touchMove", (middle - 20 - 8 * step, y), (middle + 20 + 8 * step, y))
    touch(page, "touchEnd")
    page.browser.settle()
    zoomed = window(page)
    assert zoomed[1] - zoomed[0] < (whole[1] - whole[0]) * 0.6
    touch(page, "touchStart", (middle, y))
    for step in range(1, 6):
        touch(page, "touchMove", (middle + 10 * step, y))
    touch(page, "touchEnd")
    page.browser.settle()
    moved = window(page)
    assert moved[0] < zoomed[0]
    assert round(moved[1] - moved[0]) == round(zoomed[1] - zoomed[0])


def test_the_theme_is_that_of_the_system(page: WrittenPage) -> None:
    page.write()
    colours = {}
    for dark in (False, True):
        page.browser.size(1200, 800, dark=dark)
        page.open()
        colours[dark] = page.browser.run(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        pixel = page.browser.run(
            "[...document.getElementById('lane-canvas').getContext('2d').getImageData(0, 0, 1200, 400).data]"
            ".filter((value, at) => at % 4 === 3 && value).length"
        )
        assert pixel > 1_000, "the lanes are drawn"
    assert colours == {
        False: ["rgb(255, 255, 255)", "rgb(27, 31, 36)"],
        True: ["rgb(13, 17, 23)", "rgb(230, 237, 243)"],
    }


def test_a_click_sets_the_moment_a_drag_moves_it_and_the_wheel_zooms(page: WrittenPage) -> None:
    page.write()
    page.open()
    canvas = box(page, "#lane-canvas")
    x, y = canvas["left"] + canvas["width"] / 2, canvas["top"] + 36
    mouse(page, "mousePressed", x, y, button="left", clickCount=1)
    mouse(page, "mouseReleased", x, y, button="left", clickCount=1)
    page.browser.settle()
    first, last = window(page)
    assert abs(page.browser.run("page.state.moment.now") - (first + last) / 2) < 2_000
    assert page.browser.run("page.state.object") == 0, "the node's lane is the second one"
    mouse(page, "mouseWheel", x, y, deltaX=0, deltaY=-240, modifiers=2)
    page.browser.settle()
    zoomed = window(page)
    assert (zoomed[1] - zoomed[0]) * 2 < last - first
    mouse(page, "mousePressed", x, y, button="left", clickCount=1)
    for step in range(1, 5):
        mouse(page, "mouseMoved", x - 30 * step, y, button="left", buttons=1)
    mouse(page, "mouseReleased", x - 120, y, button="left", clickCount=1)
    page.browser.settle()
    assert window(page)[0] > zoomed[0]
    page.click("#zoom-all")
    assert window(page) == (first, last)


def test_a_browser_without_base64_shows_the_page_and_one_without_decompression_says_why_not(page: WrittenPage) -> None:
    page.write()
    added = []
    for script, expected in (
        ("delete Uint8Array.fromBase64", "true"),
        ("delete window.DecompressionStream", "this browser is too old: it lacks DecompressionStream"),
    ):
        call = page.browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        added.append(call["identifier"])
        page.browser.open("about:blank")
        page.browser.open(page.file.as_uri())
        said = page.browser.run("page.ready.then(() => String(page.state.model.count > 40), (error) => error.message)")
        assert said == expected
    for identifier in added:
        page.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)
    page.browser.problems.clear()


def test_the_moment_stays_visible_when_the_time_is_zoomed(page: WrittenPage) -> None:
    page.write()
    page.open()
    page.slide(NOON + 70_000)
    for _ in range(40):
        page.click("#zoom-in")
    first, last = window(page)
    assert first <= NOON + 70_000 <= last
    assert round(last - first) == 10
    page.click("#next")
    assert window(page)[0] <= page.browser.run("page.state.timeOfMoment()") <= window(page)[1]
