"""The usage pages: their sources, how often the sources are read, and the responses while there is no sample."""

import json
from pathlib import Path

from chronolet.node.http.pages import usage_pages
from chronolet.node.settings.table import Settings
from tests.node.stats.nodes import UNLISTED, Sampled

PATHS = ("/stats/summary", "/metrics/resource", "/metrics/cadvisor")


def test_pages_show_the_last_sample_and_encode_it_once(tmp_path: Path) -> None:
    node = Sampled(tmp_path)
    node.pod()
    pages = usage_pages(Settings(node="n", root_dir=tmp_path), node.sampler.latest)
    first = {path: pages[path]({}) for path in PATHS}
    assert [one.status for one in first.values()] == [200, 200, 200]
    assert json.loads(first["/stats/summary"].body)["pods"][0]["podRef"]["name"] == "web-0"
    assert b'pod="web-0"' in first["/metrics/resource"].body
    assert first["/metrics/cadvisor"].content_type.startswith("text/plain")
    before = node.files.reads
    assert all(pages[path]({}).body is one.body for path, one in first.items())
    assert (node.files.reads, node.lists, node.inspected) == (before, 1, []), "no page reads a file or calls Docker"
    node.sampler.sample()
    assert all(pages[path]({}).body is not one.body for path, one in first.items())


def test_a_runtime_that_was_never_available_is_reported(tmp_path: Path) -> None:
    node = Sampled(tmp_path)
    node.listing = UNLISTED
    pages = usage_pages(Settings(node="n", root_dir=tmp_path), node.sampler.latest)
    assert {path: pages[path]({}).status for path in PATHS} == dict.fromkeys(PATHS, 503)
    assert pages["/stats/summary"]({}).body == b"no answer\n"
