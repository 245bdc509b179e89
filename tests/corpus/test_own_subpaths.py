"""Parts of volumes, and what a container may not reach by asking for a part; memory as a volume."""

from pathlib import Path

import pytest

from tests.corpus.own import Ran, on_host, own, says

pytestmark = pytest.mark.docker


def furnish(place: Path) -> None:
    """A folder with links that lead out of the volume `in`, and one that stays in it."""
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


PART = own(
    "part",
    says(
        "app",
        "cat /part/word /file; ls /part",
        volumeMounts=[
            {"name": "v", "mountPath": "/part", "subPath": "kept"},
            {"name": "v", "mountPath": "/file", "subPath": "kept/word", "readOnly": True},
        ],
    ),
    volumes=[on_host("v", path="/in")],
    prepare=furnish,
)
MADE = own(
    "part-made",
    says("app", "ls -A /part; touch /part/new", volumeMounts=[{"name": "v", "mountPath": "/part", "subPath": "a/b"}]),
    says("beside", "until test -e /v/a/b/new; do sleep 0.1; done", volumeMounts=[{"name": "v", "mountPath": "/v"}]),
    volumes=[{"name": "v", "emptyDir": {}}],
)
EXPANDED = own(
    "part-expanded",
    says(
        "app",
        "cat /part/word",
        env=[{"name": "WHICH", "value": "kept"}],
        volumeMounts=[{"name": "v", "mountPath": "/part", "subPathExpr": "$(WHICH)"}],
    ),
    volumes=[on_host("v", path="/in")],
    prepare=furnish,
)
LINK_INSIDE = own(
    "part-by-link",
    says("app", "cat /part/word", volumeMounts=[{"name": "v", "mountPath": "/part", "subPath": "stays"}]),
    volumes=[on_host("v", path="/in")],
    prepare=furnish,
)
ESCAPES = {
    part: own(
        f"escape-{number}",
        says("app", "cat /part /part/secret", volumeMounts=[{"name": "v", "mountPath": "/part", "subPath": part}]),
        volumes=[on_host("v", path="/in")],
        prepare=furnish,
    )
    for number, part in enumerate(("absolute", "relative", "file", "kept/up", "relative/made/below"))
}
MEMORY = own(
    "memory",
    says(
        "app",
        "grep ' /m ' /proc/mounts | cut -d ' ' -f 1,3; stat -c %a /m; touch /m/new;"
        "until test -e /m/other; do sleep 0.1; done",
        volumeMounts=[{"name": "m", "mountPath": "/m"}],
    ),
    says(
        "beside",
        "until test -e /m/new; do sleep 0.1; done; touch /m/other; df -k /small | tail -1 | awk '{print $2}'",
        volumeMounts=[{"name": "m", "mountPath": "/m"}, {"name": "small", "mountPath": "/small"}],
    ),
    volumes=[
        {"name": "m", "emptyDir": {"medium": "Memory"}},
        {"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ],
)


def test_a_part_of_a_volume(ran: Ran) -> None:
    assert ran.output(PART) == "kept\nkept\nup\nword\n"


def test_a_part_that_is_not_there_is_made(ran: Ran) -> None:
    assert ran.output(MADE) == ""
    assert ran.output(MADE, "beside") == ""


def test_a_part_named_by_a_variable(ran: Ran) -> None:
    assert ran.output(EXPANDED) == "kept\n"


def test_a_part_by_a_link_that_stays_in_the_volume(ran: Ran) -> None:
    assert ran.output(LINK_INSIDE) == "kept\n"


@pytest.mark.parametrize("part", ESCAPES)
def test_a_part_by_a_link_that_leads_out_of_the_volume(ran: Ran, part: str) -> None:
    name = ESCAPES[part]
    message = ran.waits(name, "CreateContainerConfigError")
    assert 'failed to prepare subPath for volumeMount "v" of container "app"' in message
    assert "app" not in ran.inspected(name)
    assert not (ran.place(name) / "outside" / "made").exists()


def test_memory_as_a_volume(ran: Ran) -> None:
    assert ran.output(MEMORY) == "tmpfs tmpfs\n777\n"
    assert ran.output(MEMORY, "beside") == "1024\n"
