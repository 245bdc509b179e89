"""Configures structlog for the agent's own log.

Input: the format, text or json. Output: a process-wide structlog configuration. Next: `lines`, which writes the
formatted lines to standard error.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from chronolet.node.agent_log.lines import LogLines

_LEVEL = "CHRONOLET_LOG_LEVEL"


class _Quoted:
    """A text whose `repr` is quoted, with control characters escaped."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return repr(self._text)


def configure(form: str) -> None:
    """Configure logging for this process: `form` is text or json, the level comes from CHRONOLET_LOG_LEVEL."""
    level = logging.getLevelNamesMapping().get(os.environ.get(_LEVEL, "INFO").upper(), logging.INFO)
    is_json = form == "json"
    lines = LogLines(sys.stderr, _lost_as_json if is_json else _lost)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(() if is_json else (_escape_controls,)),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer() if is_json else _on_a_terminal(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: lines,
    )


def _lost(lines: int) -> str:
    return f"log lines lost because they could not be written: {lines}"


def _lost_as_json(lines: int) -> str:
    return json.dumps({"event": _lost(lines), "level": "warning", "lines": lines})


def _on_a_terminal() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())


def _escape_controls(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters: output from probes or the engine must not control the reader's terminal. The renderer
    itself quotes only texts that contain white space.
    """
    for name, value in line.items():
        if isinstance(value, str) and not value.isprintable():
            line[name] = _Quoted(value)
    return line
