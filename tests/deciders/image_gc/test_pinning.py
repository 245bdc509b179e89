"""Which images are pinned."""

from __future__ import annotations

import pytest

from chronolet.image_gc.planning.pinning import CRI_LABEL, LABEL, pinned

ID = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("names", "labels", "patterns", "found"),
    [
        (("redis:7",), {}, (), False),
        (("redis:7",), {LABEL: "true"}, (), True),
        (("redis:7",), {LABEL: "false"}, (), False),
        (("redis:7",), {CRI_LABEL: "pinned"}, (), True),
        (("redis:7",), {}, ("redis:7",), True),
        (("redis:7",), {}, ("redis",), True),
        (("redis:7",), {}, ("redis:6",), False),
        (("redis:7",), {}, ("red*",), True),
        (("host:5000/team/app:1",), {}, ("host:5000/team/*",), True),
        (("host:5000/app",), {}, ("host",), False),
        (("app@sha256:bb",), {}, ("app",), True),
        ((), {}, (ID,), True),
        ((), {}, ("sha256:a*",), True),
    ],
)
def test_images_are_pinned_by_label_and_by_name(
    names: tuple[str, ...], labels: dict[str, str], patterns: tuple[str, ...], found: bool
) -> None:
    assert pinned(ID, names, labels, patterns) == found
