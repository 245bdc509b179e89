"""subPath mounts, including attempts to leave the volume; and volumes in memory."""

from pathlib import Path
from typing import Any

import pytest

from tests.corpus.extra.pods import AppliedPods, add_container, add_pod, host_volume, script

pytestmark = pytest.mark.docker


def furnish(place: Path) -> None:
    """Create a folder with links that lead out of the volume `in`, and one link that stays in it."""
    volume = place / "in"
    (volume / "kept").mkdir(parents=True)
    (volume / "kept" / "word").write_text("kept\n")
    (place / "outside").mkdir()
    (place / "outside" / "secret").write_text("secret\n")
    (volume / "absolute").symlink_to(place / "outside")
    (volume / "relative").symlink_to("../outside")
    (volume / "file").symlink_to("../outside/secret")
    (volume / "kept" / "up").symlink_to("../../outside")
    (volume / "stays").symlink_to("kept")


PARTS = add_pod("parts", volumes=[host_volume("v", path="/in"), {"name": "e", "emptyDir": {}}], prepare=furnish)


def mounts(name: str, lines: str, *parts: dict[str, Any], **more: Any) -> tuple[str, str]:
    """Add a container that mounts these subPaths of the volume `v`, or of another volume."""
    return add_container(PARTS, script(name, lines, volumeMounts=[{"name": "v", **part} for part in parts], **more))


PART = mounts(
    "part",
    "cat /part/word /file; ls /part",
    {"mountPath": "/part", "subPath": "kept"},
    {"mountPath": "/file", "subPath": "kept/word", "readOnly": True},
)
MADE = mounts("made", "ls -A /part; touch /part/new", {"name": "e", "mountPath": "/part", "subPath": "a/b"})
OTHER = mounts("other", "until test -e /e/a/b/new; do sleep 0.1; done", {"name": "e", "mountPath": "/e"})
EXPANDED = mounts(
    "expanded",
    "cat /part/word",
    {"mountPath": "/part", "subPathExpr": "$(WHICH)"},
    env=[{"name": "WHICH", "value": "kept"}],
)
LINK_INSIDE = mounts("by-link", "cat /part/word", {"mountPath": "/part", "subPath": "stays"})
ESCAPES = {
    part: mounts(f"escape-{number}", "cat /part /part/secret", {"mountPath": "/part", "subPath": part})
    for number, part in enumerate(("absolute", "relative", "file", "kept/up", "relative/made/below"))
}
MEMORY = add_pod(
    "memory",
    script(
        "app",
        "grep ' /m ' /proc/mounts | cut -d ' ' -f 1,3; stat -c %a /m; touch /m/new;"
        "until test -e /m/other; do sleep 0.1; done",
        volumeMounts=[{"name": "m", "mountPath": "/m"}],
    ),
    script(
        "other",
        "until test -e /m/new; do sleep 0.1; done; touch /m/other; df -k /small | tail -1 | awk '{print $2}'",
        volumeMounts=[{"name": "m", "mountPath": "/m"}, {"name": "small", "mountPath": "/small"}],
    ),
    volumes=[
        {"name": "m", "emptyDir": {"medium": "Memory"}},
        {"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ],
)


def test_a_subpath_of_a_volume(pods: AppliedPods) -> None:
    assert pods.output(*PART) == "kept\nkept\nup\nword\n"


def test_a_missing_subpath_is_created(pods: AppliedPods) -> None:
    assert pods.output(*MADE) == ""
    assert pods.output(*OTHER) == ""


def test_a_subpath_with_a_variable(pods: AppliedPods) -> None:
    assert pods.output(*EXPANDED) == "kept\n"


def test_a_link_that_stays_in_the_volume(pods: AppliedPods) -> None:
    assert pods.output(*LINK_INSIDE) == "kept\n"


@pytest.mark.parametrize("part", ESCAPES)
def test_a_link_that_leaves_the_volume_is_refused(pods: AppliedPods, part: str) -> None:
    pod, container = ESCAPES[part]
    message = pods.waits("CreateContainerConfigError", pod, container)
    assert f'failed to prepare subPath for volumeMount "v" of container "{container}"' in message
    assert container not in pods.inspected(pod)
    assert not (pods.place(pod) / "outside" / "made").exists()


def test_memory_as_a_volume(pods: AppliedPods) -> None:
    assert pods.output(MEMORY) == "tmpfs tmpfs\n777\n"
    assert pods.output(MEMORY, "other") == "1024\n"
