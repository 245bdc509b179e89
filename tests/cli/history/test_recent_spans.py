"""The agent's recent spans: which spans it retains, and how the command line reads the page that lists them."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from chronolet.adapters.http import recent_spans
from chronolet.node.http.recent_spans import RecentSpans
from chronolet.ports.spans import Span
from tests.cli.support.written_node import NOON


def test_the_newest_spans_and_those_in_progress_are_kept() -> None:
    recent = RecentSpans(most=2)
    recent.begin(_span("turn", over=False))
    for what in ("a", "b", "c"):
        recent.note(_span(what))
    assert [one.what for one in recent.of("default/web")] == ["b", "c", "turn"]
    recent.note(_span("turn"))
    assert [(one.what, one.over) for one in recent.of("")] == [("c", True), ("turn", True)]
    assert recent.of("default/db") == []


@pytest.fixture
def served() -> Iterator[tuple[str, list[bytes]]]:
    """The address of an HTTP server that returns the same body to every request, and a list that holds the body."""
    bodies = [b""]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bodies[0])

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()


def test_spans_survive_a_round_trip_over_the_page(served: tuple[str, list[bytes]]) -> None:
    address, bodies = served
    recent = RecentSpans()
    recent.note(_span("docker.create"))
    recent.begin(_span("turn", over=False))
    bodies[0] = recent.page({"entity": ["default/web"]}).body
    assert recent_spans.asked(address, "default/web") == recent.of("default/web")


@pytest.mark.parametrize("body", [b"", b"<html>", b'[{"what": 1}]', b'{"a": 1}'])
def test_an_invalid_page_is_no_answer(served: tuple[str, list[bytes]], body: bytes) -> None:
    address, bodies = served
    bodies[0] = body
    assert recent_spans.asked(address, "default/web") is None


@pytest.mark.parametrize("address", ["", "127.0.0.1:1", "nonsense"])
def test_an_unreachable_agent_is_no_answer(address: str) -> None:
    assert recent_spans.asked(address, "default/web") is None


def _span(what: str, *, over: bool = True) -> Span:
    return Span(entity="default/web", cause="1-1", what=what, at=NOON, milliseconds=1.0 if over else 0.0, over=over)
