"""Settings as plain data for the log: without passwords, and readable again."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.node.settings.plain import digest, plain_settings, read_settings
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.values import Secret

SECRET = "swordfish"
USUAL = Settings(node="n", root_dir=Path("/var/lib/chronolet"))


def settings(**given: Any) -> Settings:
    return Settings(node="n", root_dir=Path("/var/lib/chronolet"), **given)


@pytest.mark.parametrize(
    "given",
    [
        {"redis": f"redis://user:{SECRET}@redis.test:6380/2"},
        {"redis": f"rediss://redis.test?ssl_password={SECRET}"},
        {"redis_password": Secret(SECRET)},
        {"docker": f"tcp://user:{SECRET}@docker.test:2375"},
        {"docker": f"tcp://docker.test:2375?token={SECRET}"},
        {"event_webhook_url": f"https://hooks.test/{SECRET}?token={SECRET}"},
        {"event_webhook_url": f"https://user:{SECRET}@hooks.test"},
        {"event_api_server": f"https://user:{SECRET}@api.test"},
        {"tracing_endpoint": f"https://otel.test/{SECRET}"},
    ],
)
def test_no_password_remains(given: dict[str, Any]) -> None:
    assert SECRET in repr([str(value) for value in given.values()])
    assert SECRET.encode() not in msgspec.msgpack.encode(plain_settings(settings(**given)))


def test_servers_are_still_named() -> None:
    plain = plain_settings(
        settings(redis="redis://u:p@redis.test:6380/2", event_webhook_url="https://u:p@hooks.test:8/path?q")
    )
    assert plain["redis"] == "redis://redis.test:6380/2"
    assert plain["event_webhook_url"] == "https://hooks.test:8"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"pod_logs_dir": Path("/logs"), "actors": ("pod", "pleg"), "admission": ()},
        {"image_gc_high_threshold": 70, "node_labels": {"a": "b"}, "memory_throttling_factor": 0.5},
        {"cdi_spec_dirs": (Path("/a"), Path("/b")), "probe_overload_protection": False},
    ],
)
def test_plain_settings_are_read_as_they_were(given: dict[str, Any]) -> None:
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(plain_settings(settings(**given))))
    assert read_settings(plain) == settings(**given)


def test_settings_of_another_release_are_read_as_far_as_they_are_known() -> None:
    plain = plain_settings(settings(max_pods=5))
    del plain["probe_kill_hold"]
    assert read_settings({**plain, "of_a_later_release": [1]}) == settings(max_pods=5)


@pytest.mark.parametrize(("name", "value"), [("max_pods", "many"), ("root_dir", 5), ("node", None)])
def test_a_value_of_another_type_is_named(name: str, value: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match=name):
        read_settings({**plain_settings(USUAL), name: value})


def test_the_digest_depends_on_values_and_not_on_their_order() -> None:
    plain = plain_settings(USUAL)
    assert digest(plain) == digest(dict(reversed(plain.items())))
    assert digest(plain) != digest(plain_settings(settings(max_pods=5)))
