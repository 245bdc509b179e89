"""The agent's own log: what pods and engines say cannot steer the terminal of whoever reads it."""

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


def told(form: str, messages: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the agent's log of KubeEvents with these messages."""
    formats.configure(form)
    assert LogSink().deliver(warnings(messages)).delivered == len(messages)
    return capsys.readouterr().err.rstrip("\n").split("\n")


def test_a_line_each_and_nothing_that_a_terminal_takes_for_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told("text", STRANGE, capsys)
    assert len(lines) == len(STRANGE)
    assert all(line.isprintable() for line in lines)
    assert "message='a\\x1b[2Jb'" in lines[0]
    assert "message='two\\nlines'" in lines[2]


def test_what_is_harmless_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = told("text", ("caf\u00e9",), capsys)
    assert "message=caf\u00e9 object=pod/web" in line


def test_json_has_the_very_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(json.loads(line)["message"] for line in told("json", STRANGE, capsys)) == STRANGE


def test_a_failure_is_shown_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    formats.configure("text")
    try:
        int("boom")
    except ValueError:
        structlog.get_logger("test").exception("it failed", of="a\x1bb")
    said = capsys.readouterr().err
    assert "of='a\\x1bb'" in said
    assert said.rstrip().endswith("ValueError: invalid literal for int() with base 10: 'boom'")
