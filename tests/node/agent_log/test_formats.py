"""Formats of the agent's log: texts from pods and engines cannot control the reader's terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import structlog

from chronolet.adapters.kube_sinks import LogSink
from chronolet.node.agent_log import formats
from tests.support.kube_events.posts import warnings

STRANGE = ("a\x1b[2Jb", "\x1b[2J", "two\nlines", "\u2028", "\x7f", "\u202eb", "\x9b2J", "x" * 5_000)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def logged(form: str, messages: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that the agent logs for KubeEvents with these messages."""
    formats.configure(form)
    assert LogSink().deliver(warnings(messages)).delivered == len(messages)
    return capsys.readouterr().err.rstrip("\n").split("\n")


def test_each_event_is_one_line_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    lines = logged("text", STRANGE, capsys)
    assert len(lines) == len(STRANGE)
    assert all(line.isprintable() for line in lines)
    assert "message='a\\x1b[2Jb'" in lines[0]
    assert "message='two\\nlines'" in lines[2]


def test_printable_text_is_shown_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = logged("text", ("caf\u00e9",), capsys)
    assert "message=caf\u00e9 object=pod/web" in line


def test_json_has_the_exact_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(json.loads(line)["message"] for line in logged("json", STRANGE, capsys)) == STRANGE


def test_a_failure_is_shown_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    formats.configure("text")
    try:
        int("boom")
    except ValueError:
        structlog.get_logger("test").exception("it failed", of="a\x1bb")
    output = capsys.readouterr().err
    assert "of='a\\x1bb'" in output
    assert output.rstrip().endswith("ValueError: invalid literal for int() with base 10: 'boom'")
