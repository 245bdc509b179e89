"""The document: complete, without anything that a browser would load or run besides the page's own scripts."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files

from chronolet.history.page.columns import packed
from chronolet.history.page.document import SCRIPTS, STYLES, asset, document

HOSTILE = "</title><script>alert(1)</script>\"'&\u2028"


class Page(HTMLParser):
    """Collects what a browser would find in the document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if tag == "script":
            self.scripts.append((attributes, data))
        self.text[tag] = self.text.get(tag, "") + data

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", {}))


def page() -> Page:
    return Page("".join(document(HOSTILE, [packed("a", "text", b"a")], [packed("text.0", "text", b"b")])))


def test_the_title_is_text() -> None:
    assert page().text["title"] == HOSTILE


def test_the_policy_allows_exactly_the_scripts_and_styles_of_the_page() -> None:
    found = page()
    [policy] = [one["content"] for tag, one in found.tags if one.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in (policy or "").split(";"))
    own = [text for attributes, text in found.scripts if "type" not in attributes]
    digests = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in own]
    assert len(own) == len(SCRIPTS)
    assert rules["script-src"].split() == digests
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in str(policy)


def test_nothing_in_the_document_names_another_address() -> None:
    named = [
        (tag, name, value)
        for tag, attributes in page().tags
        if not tag.startswith("/")
        for name, value in attributes.items()
        if name in ("src", "href", "action", "srcset", "data", "style") or name.startswith("on")
    ]
    assert named == [("link", "href", "data:,"), ("a", "href", "#")]


def test_the_texts_come_after_the_scripts() -> None:
    order = [attributes.get("id", "script") for attributes, _ in page().scripts]
    assert order == ["part-a", *["script"] * len(SCRIPTS), "part-text.0"]


def test_every_file_of_the_page_is_used_and_cannot_end_its_element() -> None:
    root = files("chronolet.history.page") / "assets"
    folders = [one for one in root.iterdir() if one.is_dir()]
    found = {f"{folder.name}/{one.name}" for folder in folders for one in folder.iterdir()}
    assert found == {*SCRIPTS, *STYLES}
    for name in (*SCRIPTS, *STYLES):
        text = asset(name)
        assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE), name
        assert text.isprintable() or text.replace("\n", "").isprintable(), name


def test_no_script_makes_markup_of_texts_or_uses_the_network() -> None:
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write"
    forbidden = re.compile(markup + r"|\beval\b|new Function|\bfetch\(|XMLHttp|WebSocket|import\(")
    assert [name for name in SCRIPTS if forbidden.search(asset(name))] == []


def test_the_files_of_the_page_can_be_read() -> None:
    for name in (*SCRIPTS, *STYLES, "page.html"):
        lines = asset(name).splitlines()
        assert len(lines) < 400, name
        assert [line for line in lines if len(line) > 120 or line != line.rstrip()] == [], name
    for name in SCRIPTS:
        first, second, *_ = asset(name).splitlines()
        assert first == '"use strict";', name
        assert second.startswith("// "), name
