"""The page in a real browser: links, keys, search, and what it tells screen readers."""

import pytest

from tests.cli.support.histories import recorded
from tests.integration.page.conftest import WrittenPage


@pytest.fixture(autouse=True)
def _written(page: WrittenPage) -> None:
    page.write()


def at(page: WrittenPage) -> int:
    """Return the number of the moment's entry."""
    return int(page.text("#moment").rpartition("#")[2])


def crash(page: WrittenPage) -> str:
    """Return the position of the first crash of container app."""
    lines = page.node.run("log", "--type", "pod.ContainerExited", "-o", "json").output.splitlines()
    return lines[0].split('"')[3]


def test_a_link_names_an_object_and_a_moment(page: WrittenPage) -> None:
    position = crash(page)
    page.open(f"#pod/web@{position}")
    assert page.text("#moment").endswith(f"#{position.partition('-')[2]}")
    page.click("#tab-object")
    assert page.text("#object-title") == "pod web"
    assert page.browser.run("document.getElementById('object-link').hash") == f"#pod/web@{position}"
    page.browser.run("location.hash = '#pod/data/db'")
    page.browser.settle()
    assert page.text("#object-title") == "pod data/db"
    assert at(page) == int(position.partition("-")[2]), "a link without a moment keeps it"


def test_the_address_follows_the_moment_and_the_object(page: WrittenPage) -> None:
    page.open(f"#container/web/app@{crash(page)}")
    page.click("#next")
    expected = f"#container/web/app@{page.browser.run('page.state.model.position(page.state.moment.index)')}"
    page.browser.run(
        f"new Promise(done => {{ const look = () => location.hash === {expected!r} ? done() : setTimeout(look, 20);"
        "look() })"
    )
    page.open(expected)
    assert page.browser.run("page.state.model.position(page.state.moment.index)") == expected.partition("@")[2]


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        ("#pod/typo", "this page has no pod/typo"),
        ("#typo", "this page has no typo"),
        ("#pod/web@17-99999", "this page has no event 17-99999: it has 1800000000000-1 to"),
        ("#pod/web@17-3", "this page has no event 17-3: it has 1800000000000-1 to"),
        ("#%E0%A4%A", "the link #%E0%A4%A is not a valid address"),
    ],
)
def test_a_link_to_nothing_is_a_message(page: WrittenPage, fragment: str, said: str) -> None:
    page.open(fragment)
    assert page.text("#status").startswith(said)


def test_every_link_that_the_page_makes_leads_back(page: WrittenPage) -> None:
    page.open()
    wrong = page.browser.run(
        "(() => { const { state } = page; const wrong = [];"
        "for (let one = -1; one < state.model.objects; one++) {"
        "  const link = linkOf(state.model, one, state.moment), found = linked(state.model, link);"
        "  if (found.error || found.object !== one || found.moment.index !== state.moment.index) wrong.push(link) }"
        "return [state.model.objects, wrong] })()"
    )
    assert wrong[0] > 10
    assert wrong[1] == []


def test_all_controls_are_reached_by_tab_and_have_names_and_a_visible_focus(page: WrittenPage) -> None:
    page.open()
    every = page.browser.run(
        "[...document.querySelectorAll('button, input, select, a, [tabindex=\"0\"]')]"
        ".filter(one => one.offsetParent && one.tabIndex >= 0).length"
    )
    seen: dict[str, str] = {}
    page.browser.run("(window.marked = 0, document.activeElement.blur())")
    for _ in range(every):
        page.browser.press("Tab")
        mark, outline = page.browser.run(
            "(() => { const one = document.activeElement; one.dataset.mark ||= String(++window.marked);"
            "return [one.dataset.mark + ' ' + (one.id || one.textContent), getComputedStyle(one).outlineStyle] })()"
        )
        seen[mark] = outline
    assert len(seen) == every > 20
    assert {name for name, outline in seen.items() if outline == "none"} == set()
    page.browser.call("Accessibility.enable")
    nodes = page.browser.call("Accessibility.getFullAXTree")["nodes"]
    page.browser.call("Accessibility.disable")
    named = [
        (one["role"]["value"], one["name"]["value"])
        for one in nodes
        if any(each["name"] == "focusable" and each["value"]["value"] for each in one.get("properties", ()))
        and one["role"]["value"] != "RootWebArea"
    ]
    assert len(named) >= every
    assert [one for one in named if not one[1]] == []


def test_the_slider_moves_by_entries_and_to_the_ends(page: WrittenPage) -> None:
    page.open()
    page.browser.run("document.getElementById('slider').focus()")
    page.browser.press("Home")
    assert at(page) == 1
    page.browser.press("ArrowRight", "ArrowRight", "ArrowLeft")
    assert at(page) == 2
    page.browser.press("PageUp")
    later = at(page)
    assert later > 2
    page.browser.press("PageDown")
    assert at(page) < later
    page.browser.press("End")
    assert at(page) == page.node.server.last.n
    assert page.browser.run("document.getElementById('slider').getAttribute('aria-valuetext')") == page.text("#moment")


def test_the_timeline_is_a_tree_that_keys_open_and_close(page: WrittenPage) -> None:
    page.open()
    page.browser.run("document.getElementById('lanes').focus()")

    def active() -> str:
        said: str = page.browser.run(
            "document.getElementById(document.getElementById('lanes').getAttribute('aria-activedescendant'))"
            ".getAttribute('aria-label')"
        )
        return said

    page.browser.press("Home")
    assert active() == "Node (1)"
    page.browser.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown")
    assert active() == "pod web: bad"
    page.browser.press("ArrowRight", "ArrowDown")
    assert active() == "container app: bad"
    page.browser.press("ArrowDown", "ArrowLeft")
    assert active() == "pod web: bad", "from a closed lane to the one that it belongs to"
    page.browser.press("ArrowRight")
    assert active() == "container app: bad", "from an open lane to the first one in it"
    page.browser.press("ArrowUp", "ArrowLeft", "ArrowDown")
    assert active() == "Containers (1)", "it belongs to a pod that the log does not have"
    page.browser.press("ArrowLeft", "ArrowLeft")
    assert active() == "Containers (1)", "a heading belongs to nothing"


def test_a_lane_has_its_place_among_those_of_the_same_object(page: WrittenPage) -> None:
    page.open()
    page.click("#expand-all")
    found = page.browser.run(
        "[...document.querySelectorAll('.label')].map(one => [one.children[1].textContent,"
        "...['level', 'posinset', 'setsize'].map(name => Number(one.getAttribute('aria-' + name)))])"
    )
    headings = [rest for _, *rest in found if rest[0] == 1]
    count = page.browser.run("page.state.lanes.visible(null).filter(one => one.depth === 0).length")
    assert headings == [[1, place, count] for place in range(1, len(headings) + 1)]
    assert len(headings) > 2
    pods = [one for one in found if one[0] in ("data/db", "gone", "web")]
    assert pods == [["data/db", 2, 1, 3], ["gone", 2, 2, 3], ["web", 2, 3, 3]]


def test_the_list_stays_limited_to_the_object_while_it_is_used(page: WrittenPage) -> None:
    page.open("#pod/web")
    page.click("#tab-entries")
    page.click("#only-object")
    assert page.text("#only-name") == "pod web"
    count = page.text("#entry-count")
    page.browser.run("document.getElementById('entries').focus()")
    page.browser.press("End")
    assert page.browser.run("nameOf(page.state.model, page.state.object)") != "pod web", "the event's own object"
    assert page.text("#entry-count") == count
    seen = [at(page)]
    for _ in range(4):
        page.browser.press("ArrowUp")
        seen.append(at(page))
    assert seen == sorted(set(seen), reverse=True)
    assert page.text("#entry-count") == count
    page.click("#only-object")
    assert page.text("#entry-count") != count
    assert page.text("#only-name") == "the selected object"
    page.open("#@1")
    page.click("#only-object")
    assert page.text("#status") == "no object is selected"
    assert page.browser.run("document.getElementById('only-object').checked") is False


def test_the_event_of_the_moment_is_there_in_full_with_its_cause(page: WrittenPage) -> None:
    request, text = "request-of-a-person", "word " * 20
    first = page.node.write("pod/default/web", recorded("Odd", text), cause=request)
    page.node.write("pod/default/web", recorded("Next", "end"), cause=str(first))
    page.write()
    page.open(f"#@{first.n}")
    page.click("#tab-entries")
    page.browser.run("page.state.search.texts.block(0)")
    page.browser.settle()
    lines = {int(one.split("#")[1].split()[0]): one for one in page.node.run("log").output.splitlines()}
    for number in (first.n, first.n + 1):
        page.go_to(f"#{number}")
        line = lines[number].partition(" ")[2]
        shown = page.text("#entry")
        assert sorted(shown.split()) == sorted([*line.split(), shown.split()[1]])
        assert f"<-{request if number == first.n else f'#{first.n}'} " in shown
        assert page.browser.run("getComputedStyle(document.getElementById('entry')).whiteSpace") == "normal"
    page.click("#to-cause")
    assert at(page) == first.n
    page.click("#to-cause")
    assert page.text("#status") == f"its cause, {request}, is not an event before it"


def test_severities_have_a_sign_with_a_name(page: WrittenPage) -> None:
    page.open()
    page.click("#tab-entries")
    page.browser.run("document.getElementById('entries').focus()")
    page.browser.press("Home")
    seen = set()
    for _ in range(4):
        seen |= {
            tuple(one)
            for one in page.browser.run(
                "[...document.querySelectorAll('.entry')].map(one => [one.dataset.severity,"
                "one.children[0].textContent, one.children[0].getAttribute('aria-label')])"
            )
        }
        page.browser.press("PageDown")
    assert seen == {("0", "", None), ("1", "\u2022", "problem or retry"), ("2", "!", "warning")}


def test_tabs_the_list_of_events_and_its_filters_work_by_keys(page: WrittenPage) -> None:
    page.open()
    page.browser.run("document.getElementById('tab-state').focus()")
    page.browser.press("ArrowRight")
    assert page.browser.run("document.activeElement.id") == "tab-entries"
    page.browser.run("document.getElementById('entries').focus()")
    page.browser.press("Home")
    assert at(page) == 1
    page.browser.press("ArrowDown", "PageDown")
    assert at(page) > 3
    selected = page.text('.entry[aria-selected="true"] .number')
    assert selected == f"#{at(page)}"
    page.browser.run(
        "(() => { const level = document.getElementById('level'); level.value = 'warning';"
        "level.dispatchEvent(new Event('change')) })()"
    )
    page.browser.settle()
    types = page.browser.run("[...document.querySelectorAll('.entry .type')].map(one => one.textContent)")
    assert set(types) == {"pod.ContainerExited", "kube_events.Recorded", "prober.ProbeFailed"}
    page.browser.press("Home", "End")
    assert page.text('.entry[aria-selected="true"] .type') == "pod.ContainerExited"


def searched(page: WrittenPage, query: str, *, in_texts: bool = False) -> list[str]:
    """Search, and return the numbers of the entries that are found."""
    page.browser.run(
        "(async () => {"
        f"document.getElementById('query').value = {query!r};"
        f"document.getElementById('in-texts').checked = {str(in_texts).lower()};"
        "document.getElementById('in-texts').dispatchEvent(new Event('change'));"
        "await new Promise(done => { const look = () => page.state.search.progress === 1 && !page.state.pending"
        " ? done() : setTimeout(look, 20); setTimeout(look, 50) }) })()"
    )
    page.browser.settle()
    found: list[str] = page.browser.run(
        "(() => { const { found } = page.state.search;"
        "return found && [...found].map(one => page.state.model.word('type', one)) })()"
    )
    return found


def test_a_search_finds_objects_and_events_by_name_and_by_text(page: WrittenPage) -> None:
    page.open()
    assert searched(page, "") is None
    assert set(searched(page, "liveness")) == {"prober.ProbeFailed@1"}
    assert searched(page, "registered /gpu.sock") == []
    assert searched(page, "registered /gpu.sock", in_texts=True) == ["devices.PluginRegistered@1"]
    assert searched(page, "back-off RESTARTING", in_texts=True) == ["kube_events.Recorded@1"]
    searched(page, "data/db")
    assert [row[1] for row in page.table("pod")] == []
    page.click("#first")
    page.go_to("#25")
    assert [row[1] for row in page.table("pod")] == ["db"]
    labels = page.browser.run("[...document.querySelectorAll('.label .name')].map(one => one.textContent)")
    assert labels == ["Pods (1)", "data/db"]
    assert searched(page, "nothing has this name", in_texts=True) == []


def test_the_object_panel_goes_from_event_to_event(page: WrittenPage) -> None:
    page.open("#pod/web@1800000000000-1")
    page.click("#tab-object")
    page.click("#object-next-warning")
    assert at(page) == int(crash(page).partition("-")[2])
    assert page.text("#object-facts").startswith("NAMESPACEdefaultNAMEweb")
    current = page.text('#object-versions [aria-current="true"]')
    assert "RESTARTS" in current or "STATUS" in current
    page.click("#object-previous")
    assert at(page) < int(crash(page).partition("-")[2])
    page.click("#object-versions li:last-child button")
    assert at(page) > int(crash(page).partition("-")[2])


def test_the_moment_is_announced_once_it_rests(page: WrittenPage) -> None:
    page.open()
    page.click("#previous-warning")
    page.browser.run(
        "new Promise(done => { const look = () => /[0-9]+ pods, [0-9]+ with problems$/"
        ".test(document.getElementById('status').textContent) ? done() : setTimeout(look, 20); look() })"
    )
    assert page.text("#status").startswith(page.text("#moment"))
    assert page.browser.run("document.getElementById('status').getAttribute('aria-live')") == "polite"
