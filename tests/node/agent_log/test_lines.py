"""Log lines that cannot be written: logging never fails, and the log later states how many lines were lost."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO

import pytest
import structlog

from chronolet.adapters.kube_sinks import LogSink
from chronolet.node.agent_log import formats
from chronolet.node.agent_log.lines import LogLines
from tests.support.kube_events.posts import warnings

POSTS = warnings(f"number {n}" for n in range(3))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def notice(lost: int) -> str:
    return f"{lost} were lost"


@contextmanager
def pointed_at(stream: TextIO, descriptor: int) -> Iterator[None]:
    """Redirect the stream's output to `descriptor` while the block runs."""
    before = os.dup(stream.fileno())
    os.dup2(descriptor, stream.fileno())
    try:
        yield
    finally:
        os.dup2(before, stream.fileno())
        os.close(before)


@contextmanager
def without_room() -> Iterator[int]:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def without_reader() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@pytest.mark.parametrize("refusing", [without_room, without_reader])
def test_lost_lines_are_counted_and_reported_by_the_next_line(
    refusing: Callable[[], AbstractContextManager[int]], tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w") as stream, refusing() as descriptor:
        lines = LogLines(stream, notice)
        assert not lines.info("first")
        with pointed_at(stream, descriptor):
            reasons = [lines.warning("second"), lines.error("third")]
        assert all(reason.startswith("standard error: ") for reason in reasons)
        assert not lines.info("fourth")
        assert not lines.info("fifth")
    assert (tmp_path / "log").read_text() == "first\n2 were lost\nfourth\nfifth\n"


def test_a_truncated_line_is_ended_before_the_next_one(tmp_path: Path) -> None:
    """If a pipe or disk fills up, it may accept only the beginning of a line."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with os.fdopen(writer, "w") as stream, os.fdopen(reader, "rb", buffering=0) as read:
        lines = LogLines(stream, notice)
        assert lines.info("x" * 1_000_000)
        taken = len(read.read(1 << 20) or b"")
        assert 0 < taken < 1_000_000
        assert not lines.info("next")
        assert read.read(1 << 20) == b"\n1 were lost\nnext\n"


def test_a_stream_without_a_descriptor_is_written_directly() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    assert not LogLines(stream, notice).info("one")
    stream.seek(0)
    assert stream.read() == "one\n"


def test_text_that_cannot_be_encoded_is_escaped(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as stream:
        assert not LogLines(stream, notice).info("a\udc80b")
    assert (tmp_path / "log").read_text() == "a\\udc80b\n"


def test_kubeevents_whose_line_was_lost_are_not_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their delivery is retried later, as for any other sink; KubeEvents delivered before are not delivered again."""
    with (tmp_path / "log").open("w") as stream, without_room() as full:
        monkeypatch.setattr(sys, "stderr", stream)
        formats.configure("json")
        assert LogSink().deliver(POSTS[:1]).delivered == 1
        with pointed_at(stream, full):
            outcome = LogSink().deliver(POSTS[1:])
        assert (outcome.delivered, outcome.failure) == (0, "standard error: No space left on device")
        assert LogSink().deliver(POSTS[1:]).delivered == 2
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line.get("message") for line in lines] == ["number 0", None, "number 1", "number 2"]
    assert lines[1]["event"] == "log lines lost because they could not be written: 1"
