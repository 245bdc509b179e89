"""Which verdict follows from what was found here and what is recorded, and which kinds touch the node."""

import pytest

from chronolet.kernel.storage.redis.sites import Site
from chronolet.node.settings.settings import ALL_ACTORS
from chronolet.node.site.containers import objection
from chronolet.node.site.judgement import Here, Verdict, judge, touching
from chronolet.ports.runtime.runtime import EngineIdentity

ENGINE = EngineIdentity(id="E1", root="/var/lib/docker")
SITE = Site(machine_id="m1", engine_id="E1", engine_root="/var/lib/docker")


def here(machine_id: str = "m1", problem: str = "", engine: EngineIdentity | None = ENGINE) -> Here:
    return Here(machine_id, problem, engine)


@pytest.mark.parametrize(
    ("found", "recorded", "word"),
    [
        (here(), SITE, "allowed"),
        (here(engine=None), SITE, "allowed"),
        (here("m2"), SITE, "refused"),
        (here("m2", engine=None), SITE, "refused"),
        (here(engine=EngineIdentity(id="E2", root="/var/lib/docker")), SITE, "refused"),
        (here(engine=EngineIdentity(id="E1", root="/srv/docker")), SITE, "refused"),
        (here(), None, "unrecorded"),
        (here(engine=None), None, "unrecorded"),
        (here("", "no file"), SITE, "refused"),
        (here("", "no file"), None, "refused"),
    ],
)
def test_the_verdict(found: Here, recorded: Site | None, word: str) -> None:
    verdict = judge("n", found, recorded)
    assert verdict.word == word
    assert bool(verdict.reason) == (word == "refused")


def test_a_refusal_names_both_sites_and_says_what_to_do() -> None:
    assert judge("n", here("m2"), SITE) == Verdict(
        "refused",
        "node n lives on machine m1, engine E1 (/var/lib/docker); found machine m2: run the agent there instead; if "
        "this machine and engine replace them, stop the agent there and run `chronolet node move` here",
    )
    other = judge("n", here(engine=EngineIdentity(id="", root="/srv/docker")), SITE)
    assert "found engine without an id (/srv/docker) on that machine: start the former engine, or" in other.reason


def test_a_site_needs_both_a_machine_and_an_engine() -> None:
    assert here().site == SITE
    assert here("").site is None
    assert here(engine=None).site is None


def test_which_kinds_touch_the_node() -> None:
    assert touching(("kube_events", "manifests"), manifest_path="") == frozenset()
    assert touching(("manifests",), manifest_path="/etc/pods") == {"manifests"}
    assert touching(("keeper",), manifest_path="") == {"keeper"}
    assert touching(("keeper",), manifest_path="", archive="s3://logs/nodes") == frozenset()
    assert touching(("manifests", "pod", "kube_events"), manifest_path="") == {"manifests", "pod"}
    every = ("pleg", "pod", "prober", "devices", "qos", "container_gc", "image_gc", "keeper")
    elsewhere = set(ALL_ACTORS) - touching(ALL_ACTORS, manifest_path="/etc/pods")
    assert elsewhere == {"kube_events"}, "does the new kind touch the node? Then name it in ALWAYS_TOUCH"
    assert touching((*every, "kube_events"), manifest_path="") == set(every)


@pytest.mark.parametrize(
    ("wanted", "found", "strange"), [("", "", False), ("", "x", False), ("ab", "b", False), ("ab", "x", True)]
)
def test_an_engine_without_any_known_container_is_a_stranger(wanted: str, found: str, strange: bool) -> None:
    text = objection("n", set(wanted), set(found))
    assert bool(text) == strange
    if strange:
        assert "names 2 containers" in text
