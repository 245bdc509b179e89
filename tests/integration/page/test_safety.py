"""The page in a real browser: hostile texts of a log stay texts, and nothing leaves the page."""

import pytest

from chronolet_schemas import codec, kube_events, pod
from chronolet_schemas.envelope import Record
from tests.cli.support.histories import accepted
from tests.integration.page.conftest import WrittenPage

HOSTILE = (
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "\"'><svg onload=window.hit=1>",
    "&lt;b&gt; &amp; {{data}} ${window.hit = 1} `",
    "line\u2028separator\u2029 \x00\x1b[31m\u202e",
    "__proto__",
    "constructor",
    "a" * 5_000,
    "\U0001f600 e\u0301",
)
"""Texts that would do harm as markup or as a script, or that break what takes them for something else."""


LOAD = (
    "new Promise((done, failed) => {{ const one = document.createElement('{}'); one.onerror = failed;"
    "one.onload = done; one.src = 'https://example.invalid/a.{}'; document.body.append(one) }})"
)


def write_hostile(page: WrittenPage) -> None:
    """Write pods with these names, and events with these texts. Names are not validated: a log may be anyone's."""
    with page.node.server.changed:
        for text in HOSTILE:
            about = f"pod/default/{text}"
            for event in (accepted(text), recorded(text)):
                page.node.server.append(page.node.record(about, event))
            data = codec.encode(pod.PodEnded(pod=text, uid=text))
            page.node.server.append(Record(f"pod.{text}@1", about, text, text, text, data))


def recorded(text: str) -> kube_events.Recorded:
    return kube_events.Recorded(
        object_kind="Pod",
        namespace="default",
        name=text,
        field_path=f"spec.containers{{{text}}}",
        severity="Warning",
        reason="Unhealthy",
        message=text,
    )


def test_hostile_texts_are_shown_as_texts(page: WrittenPage) -> None:
    write_hostile(page)
    page.write()
    page.open()
    names = [row[1] for row in page.table("pod")]
    assert names == [row[1] for row in page.table("pod")]
    assert sum(text in names for text in HOSTILE) >= len(HOSTILE) - 1, "one has control characters, which are escaped"
    assert "line\\u2028separator\\u2029 \\x00\\x1b[31m\\u202e" in names
    page.click("#expand-all")
    page.click("#tab-entries")
    for text in HOSTILE:
        page.browser.run(f"page.state.select(named(page.state.model, 'pod/' + {text!r}))")
        page.click("#previous")
        page.click("#tab-object")
        assert page.text("#object-title") == f"pod {text}"
        page.click("#tab-entries")
    texts = page.browser.run("[...document.querySelectorAll('.entry')].map(one => one.textContent)")
    assert len(texts) > 3
    assert page.browser.run("typeof window.hit") == "undefined"
    assert page.browser.run("document.querySelectorAll('svg, img, #rows b, .entry script').length") == 0


def test_links_to_hostile_names_lead_back(page: WrittenPage) -> None:
    write_hostile(page)
    page.write()
    page.open()
    for text in HOSTILE:
        link = page.browser.run(
            f"linkOf(page.state.model, named(page.state.model, 'pod/' + {text!r}), page.state.moment)"
        )
        assert page.browser.run(f"linked(page.state.model, {link!r}).object") == page.browser.run(
            f"named(page.state.model, 'pod/' + {text!r})"
        )


def test_a_search_for_hostile_texts_finds_them(page: WrittenPage) -> None:
    write_hostile(page)
    page.write()
    page.open()
    found = page.browser.run(
        "(async () => { const { search } = page.state;"
        "await search.start({ query: '</SCRIPT><script>', inTexts: true, level: 'all', family: [] }, () => {});"
        "return search.found.length })()"
    )
    assert found >= 3


@pytest.mark.parametrize(
    "attempt",
    [
        "fetch('https://example.invalid/')",
        LOAD.format("img", "png"),
        LOAD.format("script", "js"),
        "new Promise((done) => done(new Function('return 1')()))",
    ],
)
def test_the_policy_forbids_every_connection_and_every_other_script(page: WrittenPage, attempt: str) -> None:
    """The fixture checks that no request left the page."""
    page.write()
    page.open()
    assert page.browser.run(f"{attempt}.then(() => 'done', () => 'refused')") == "refused"
    page.browser.problems.clear()


def test_markup_that_gets_into_the_page_does_not_run(page: WrittenPage) -> None:
    """A second line of defence, should a view ever make markup of a text."""
    page.write()
    page.open()
    page.browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit = 1\">')")
    page.browser.run(
        "(() => { const one = document.createElement('script'); one.textContent = 'window.hit = 1';"
        "document.body.append(one) })()"
    )
    page.browser.settle()
    assert page.browser.run("typeof window.hit") == "undefined"
    assert any("Content Security Policy" in one for one in page.browser.problems)
    page.browser.problems.clear()


@pytest.mark.parametrize("lost", ["pod.begin", "entry.type", "summary"])
def test_an_incomplete_page_says_so(page: WrittenPage, lost: str) -> None:
    page.write()
    text = page.file.read_text(encoding="utf-8").replace(f'id="part-{lost}"', 'id="part-lost"')
    page.file.write_text(text, encoding="utf-8")
    page.browser.open("about:blank")
    page.browser.open(page.file.as_uri())
    page.browser.run("page.ready.catch(() => {})")
    assert page.text("#loading") == f"The page cannot be shown: the page has no part {lost}: it is not complete"
    page.browser.problems.clear()


def test_a_page_that_was_cut_off_in_its_texts_shows_the_rest(page: WrittenPage) -> None:
    page.write()
    text = page.file.read_text(encoding="utf-8")
    page.file.write_text(text[: text.index('id="part-text.0"') + 500], encoding="utf-8")
    page.open()
    page.click("#tab-entries")
    said = "texts of events are missing: the part text.0 of the page is damaged"
    page.browser.run(
        f"new Promise(done => {{ const look = () => document.getElementById('status').textContent.startsWith({said!r})"
        " ? done() : setTimeout(look, 20); look() })"
    )
    assert page.text('.entry[aria-selected="true"] .type') == "pod.PodEnded"
    page.browser.settle()
    assert page.text('.entry[aria-selected="true"] .detail').endswith("(this text is missing: the page is damaged)")
    assert [row[1] for row in page.table("pod")] == ["web"]
    page.browser.run(
        "(document.getElementById('in-texts').checked = true, document.getElementById('query').value = 'x')"
    )
    page.browser.run("document.getElementById('in-texts').dispatchEvent(new Event('change'))")
    page.browser.run(
        "new Promise(done => { const look = () => document.getElementById('status').textContent.startsWith('search: ')"
        " ? done() : setTimeout(look, 20); look() })"
    )


@pytest.mark.parametrize("mark", ["part-pod.begin", "class Lanes", "class Timeline"])
def test_a_page_that_was_cut_off_earlier_keeps_its_hint(page: WrittenPage, mark: str) -> None:
    page.write()
    text = page.file.read_text(encoding="utf-8")
    page.file.write_text(text[: text.index(mark) + 30], encoding="utf-8")
    page.browser.open("about:blank")
    page.browser.open(page.file.as_uri())
    assert page.text("#loading").endswith("If this text stays, the file is not complete.")
    page.browser.problems.clear()


def test_a_page_with_damaged_data_says_so(page: WrittenPage) -> None:
    page.write()
    text = page.file.read_text(encoding="utf-8")
    at = text.index('id="part-entry.type"') + len('id="part-entry.type">') + 20
    page.file.write_text(text[:at] + "AAAA" + text[at + 4 :], encoding="utf-8")
    page.browser.open("about:blank")
    page.browser.open(page.file.as_uri())
    page.browser.run("page.ready.catch(() => {})")
    assert page.text("#loading").startswith("The page cannot be shown: the part entry.type of the page is damaged")
    page.browser.problems.clear()
