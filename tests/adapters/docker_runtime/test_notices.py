"""Docker's notices of containers whose image has labels named like Docker's own attributes, which they replace."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from chronolet.adapters.docker_runtime.replies import OpenReply
from chronolet.adapters.docker_runtime.streams import notices
from chronolet.ports.runtime.runtime import Notice


class Reply:
    """A reply that is already there, and was closed by its reader."""

    closed = True

    def __init__(self, content: bytes) -> None:
        self._pieces = [content, b""]

    def read_some(self) -> bytes:
        return self._pieces.pop(0)


def notice(action: str, **attributes: str) -> Notice:
    event: dict[str, Any] = {"Action": action, "Actor": {"ID": "a", "Attributes": attributes}, "timeNano": 10**18}
    (found,) = notices(cast(OpenReply, Reply(msgspec.json.encode(event) + b"\n")))
    return found


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("9", 9),
        ("64", 64),
        *((text, None) for text in ("0", "65", "foo", "-1", "9" * 25, "9" * 5000, "\u00b2", "\u0665", "")),
    ],
)
def test_only_the_number_of_a_signal_is_one(text: str, signal: int | None) -> None:
    assert notice("kill", signal=text).signal == signal


@pytest.mark.parametrize(
    ("text", "code"), [("0", 0), ("255", 255), ("256", None), ("done", None), ("9" * 5000, None), ("-1", None)]
)
def test_only_an_exit_code_is_one(text: str, code: int | None) -> None:
    assert notice("die", exitCode=text).exit_code == code
    assert notice("start", exitCode=text).exit_code == 0


def test_a_label_among_the_attributes_of_another_notice_hides_the_signals() -> None:
    assert [notice(action, signal="9").signal for action in ("start", "die", "oom")] == [None] * 3
    assert [notice(action).signal for action in ("start", "die", "oom")] == [0] * 3
