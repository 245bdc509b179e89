"""Names are replaced everywhere, consistently, and nothing that the code compares with is."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.history.bundle.anonymising.anonymiser import Anonymiser
from chronolet.history.bundle.anonymising.names import Names, all_names
from chronolet.history.bundle.anonymising.settings import CLASSES, KEPT, find_in_settings
from chronolet.history.bundle.redaction.redactor import Redactor, Values
from chronolet.history.bundle.vocabulary import words
from chronolet.node.settings.settings import Settings
from chronolet_schemas import codec, data_fields, registry
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.times import time_of, with_time
from tests.golden.samples import all_classes, sample

VOCABULARY = words()
UID = "c16fb4c12df26c486e76ffac56e28499"
ID = "5e" * 32


def entry(data: Any, number: int = 1, **more: str) -> Entry:
    fields = {"type": "x.Unknown@1", "entity": "pod/shop/cart", "subject": "", "actor": "pod/0#1", "cause": "", **more}
    return Entry(Position(1, number), data=msgspec.msgpack.encode(data), **fields)


def anonymised(*entries: Entry, states: tuple[Any, ...] = ()) -> list[Entry]:
    names = all_names(VOCABULARY, entries, states)
    anonymiser = Anonymiser(names, VOCABULARY, b"key")
    return [anonymiser.entry(one, readable=True) for one in entries]


def data_of(*data: Any) -> list[Any]:
    return [msgspec.msgpack.decode(one.data) for one in anonymised(*map(entry, data))]


PLACES: dict[str, tuple[Any, Any]] = {
    "a pod": ({"pod": "shop/cart"}, {"pod": "namespace-1/pod-1"}),
    "a sentence": (
        {"pod": "shop/cart", "message": "restarting app in pod cart_shop(c) of shop/cart."},
        {"pod": "namespace-1/pod-1", "message": "restarting app in pod pod-1_namespace-1(c) of namespace-1/pod-1."},
    ),
    "a name of Docker's": (
        {"name": f"/chrono_app_cart_shop_{UID}_0"},
        {"name": r"/chrono_app_pod-1_namespace-1_[0-9a-f]{32}_0"},
    ),
    "a name within a longer one": ({"message": "the cartoon shopper"}, {"message": "the cartoon shopper"}),
    "an event's name": ({"name": "cart.18ec0b152ec70c70"}, {"name": r"pod-1.[0-9a-f]{16}"}),
    "an image": (
        {
            "image": "registry.local:5000/shop/web-shop:1.2",
            "message": 'Pulling "registry.local:5000/shop/web-shop:1.2"',
        },
        {"image": "image-1:tag1", "message": 'Pulling "image-1:tag1"'},
    ),
    "its registry": (
        {"image": "registry.local:5000/a/b:1", "error": "lookup registry.local on 10.9.8.7:53: no such host"},
        {"image": "image-1:tag1", "error": "lookup host-1 on 10.0.0.1:53: no such host"},
    ),
    "an image by digest": (
        {"digest": f"quay.io/x/y@sha256:{ID}"},
        {"digest": "image-1@sha256:[0-9a-f]{64}"},
    ),
    "two tags of an image": (
        {"names": ["quay.io/x/y:1", "quay.io/x/y:2", "quay.io/x/z:latest"]},
        {"names": ["image-1:tag1", "image-1:tag2", "image-2:latest"]},
    ),
    "addresses": (
        {"ip": "172.17.0.4", "message": "http://172.17.0.4:80 and 172.17.0.5, not 127.0.0.1 or 0.0.0.0:80"},
        {"ip": "10.0.0.1", "message": "http://10.0.0.1:80 and 10.0.0.2, not 127.0.0.1 or 0.0.0.0:80"},
    ),
    "addresses of version 6": (
        {"ip": "2001:db8::5", "message": "[2001:db8::5]:80"},
        {"ip": "fd00::1", "message": r"\[fd00::1\]:80"},
    ),
    "a version is no address": ({"message": "version 1.2.3.rc 20.10.24"}, {"message": "version 1.2.3.rc 20.10.24"}),
    "labels": (
        {"labels": {"team": "blue", "acme.com/zone": "north", "app.kubernetes.io/name": "cart"}},
        {"labels": {"label-1": "value-1", "domain-1/label-2": "value-2", "app.kubernetes.io/name": "pod-1"}},
    ),
    "annotations": (
        {"annotations": {"acme.com/zone": "<redacted-1>", "chronolet/conditions": "x", "kubectl.kubernetes.io/y": "z"}},
        {
            "annotations": {
                "domain-1/annotation-1": "<redacted-1>",
                "chronolet/conditions": "x",
                "kubectl.kubernetes.io/y": "z",
            }
        },
    ),
    "hosts in texts": (
        {"output": "http://db-1:80 and https://u@api.acme.com/x, lookup cache on 127.0.0.1, see mail.eu.acme.com."},
        {"output": "http://host-1:80 and https://u@host-2/x, lookup host-3 on 127.0.0.1, see host-4."},
    ),
    "a host in a header": (
        {"httpHeaders": [{"name": "Host", "value": "cart.acme:80"}]},
        {"httpHeaders": [{"name": "Host", "value": "host-1:80"}]},
    ),
    "fields of a pod are no hosts": (
        {"error": "spec.containers.image: metadata.labels.x"},
        {"error": "spec.containers.image: metadata.labels.x"},
    ),
    "containers and volumes": (
        {"spec": {"containers": [{"name": "billing", "volumeMounts": [{"name": "ledger", "mountPath": "/acme/x1"}]}]}},
        {
            "spec": {
                "containers": [
                    {"name": "container-1", "volumeMounts": [{"name": "volume-1", "mountPath": "/path-1/path-2"}]}
                ]
            }
        },
    ),
    "a container in a field": (
        {"container": "billing", "field": "spec.containers{billing}", "subject": "container/billing"},
        {"container": "container-1", "field": "spec.containers{container-1}", "subject": "container/container-1"},
    ),
    "a file": (
        {"path": "/etc/acme/cart.yaml", "source": "file:/etc/acme/cart.yaml"},
        {"path": "/etc/path-1/path-2", "source": "file:/etc/path-1/path-2"},
    ),
    "a node": ({"node": "rack-7", "message": "node rack-7"}, {"node": "node-1", "message": "node node-1"}),
    "the words of Kubernetes": (
        {"pod": "default/app", "container": "init", "reason": "CrashLoopBackOff", "role": "app"},
        {"pod": "default/app", "container": "init", "reason": "CrashLoopBackOff", "role": "app"},
    ),
    "bytes": ({"pod": "shop/cart", "data": b"cart"}, {"pod": "namespace-1/pod-1", "data": "<4 bytes left out>"}),
    "numbers": ({"attempt": 3, "cause": "1795812003860-91588"}, {"attempt": 3, "cause": "1795812003860-91588"}),
    "a name of digits": (
        {"pod": "shop/123", "message": "exit code 123"},
        {"pod": "namespace-1/123", "message": "exit code 123"},
    ),
}


@pytest.mark.parametrize(("given", "expected"), PLACES.values(), ids=PLACES)
def test_each_place(given: Any, expected: Any) -> None:
    (found,) = data_of(given)
    assert matches(found, expected), found


def matches(found: Any, expected: Any) -> bool:
    """Return whether texts in plain data match patterns or are equal to them."""
    if isinstance(expected, str):
        return found == expected or re.fullmatch(expected, found) is not None
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(matches(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(matches, found, expected))
    return bool(found == expected)


def test_the_entry_itself() -> None:
    (found,) = anonymised(
        entry({}, entity="pod/shop/cart", subject=f"pod/{UID}", actor="process/rack-7#3", cause="1-1")
    )
    assert found.entity == "pod/namespace-1/pod-1"
    assert re.fullmatch("pod/[0-9a-f]{32}", found.subject)
    assert UID not in found.subject
    assert (found.actor, found.cause, found.position, found.type) == (
        "process/process-1#3",
        "1-1",
        (1, 1),
        "x.Unknown@1",
    )


def test_an_id_and_its_first_digits_belong_together() -> None:
    one, other = data_of({"id": ID, "message": f"docker logs {ID[:12]}"}, {"cgroup": f"kubepods/pod{UID}", "uid": UID})
    assert one["id"] != ID
    assert one["message"] == f"docker logs {one['id'][:12]}"
    assert other["cgroup"] == f"kubepods/pod{other['uid']}"
    assert UID not in str(other)


def test_twelve_digits_that_are_no_id_stay() -> None:
    assert (
        data_of({"id": ID, "message": "at 179581200386 deadbeefcafe"})[0]["message"] == "at 179581200386 deadbeefcafe"
    )


def test_different_names_stay_different_even_if_they_look_like_replacements() -> None:
    pods = [f"shop/{name}" for name in ("pod-2", "pod-1", "cart", "namespace-1", "pod", "x.y", "x", "y")]
    found = [one["pod"] for one in data_of(*({"pod": pod} for pod in pods))]
    assert len(set(found)) == len(pods)
    assert found[4] == "namespace-2/pod", "a word of Kubernetes"
    replaced = [name for index, name in enumerate(found) if index != 4]
    assert not {name.partition("/")[2] for name in replaced} & {pod.partition("/")[2] for pod in pods}


def test_another_key_gives_other_ids() -> None:
    names = Names(VOCABULARY)
    assert Anonymiser(names, VOCABULARY, b"1").text(ID) != Anonymiser(names, VOCABULARY, b"2").text(ID)
    assert Anonymiser(names, VOCABULARY, b"1").text(ID) == Anonymiser(names, VOCABULARY, b"1").text(ID)


def test_data_that_is_not_readable_is_left_out_but_for_its_time() -> None:
    given = entry({"pod": "shop/cart"})
    given = given._replace(data=with_time(given.data, 1_800_000_000_000))
    found = Anonymiser(Names(VOCABULARY), VOCABULARY, b"key").entry(given, readable=False)
    assert msgspec.msgpack.decode(found.data) == {"_time": 1_800_000_000_000}
    assert time_of(found) == 1_800_000_000_000


@pytest.mark.parametrize("data", [b"", b"\xc1", b"cart", b"\x93\x01\x02\x03"])
def test_data_that_is_no_map_is_left_out(data: bytes) -> None:
    (found,) = anonymised(entry({})._replace(data=data))
    assert found.data == (b"" if data == b"" else b"\x80")


def test_a_name_that_a_later_field_of_the_same_name_hides_is_left_out() -> None:
    (found,) = anonymised(entry({})._replace(data=b"\x82\xa1a\xa4cart\xa1a\xa2ok"))
    assert msgspec.msgpack.decode(found.data) == {"a": "ok"}
    assert b"cart" not in found.data


# -- every type -------------------------------------------------------------------------------------------------------
EVENTS = [cls for cls in all_classes() if issubclass(cls, Event)]
GOLDEN = Path(__file__).parents[2] / "golden" / "events"


def test_there_are_events() -> None:
    assert len(EVENTS) > 100
    assert len(list(GOLDEN.glob("*.json"))) >= len(EVENTS)


@pytest.mark.parametrize("cls", EVENTS, ids=registry.type_of)
def test_every_event_is_still_one(cls: type[Event]) -> None:
    """An event with every field decodes, with the same numbers, also if each of its texts is the name of a pod."""
    event: Any = sample(cls)
    name = registry.type_of(cls)
    given = entry({}, type=name)._replace(data=codec.encode(event))
    pods = [entry({"pod": f"shop/{text}"}) for text in texts(msgspec.to_builtins(event)) if "/" not in text]
    found = anonymised(given, *pods)[0]
    assert numbers(msgspec.to_builtins(codec.decode(name, found.data, Event))) == numbers(msgspec.to_builtins(event))
    redacted = Redactor(Values()).data(codec.encode(event))
    assert numbers(msgspec.to_builtins(codec.decode(name, redacted, Event))) == numbers(msgspec.to_builtins(event))


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    parts = value.items() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for part in parts for text in texts(part)]


def numbers(value: Any) -> Any:
    """Return plain data with all texts left out."""
    if isinstance(value, dict):
        return [numbers(held) for held in value.values()]
    if isinstance(value, list | tuple):
        return [numbers(item) for item in value]
    return "text" if isinstance(value, str) else value


# -- settings and long words ------------------------------------------------------------------------------------------
def test_every_setting_is_classified() -> None:
    assert set(CLASSES) | KEPT == set(Settings.__struct_fields__)
    assert not set(CLASSES) & KEPT


SETTINGS = {
    "root_dir": "/srv/acme-shop",
    "pod_manifest_path": "/srv/acme-pods/x.yaml",
    "process_name": "acme-shop-agent",
    "node_labels": {"acme-shop.example/tier": "acme-gold"},
    "http_allowed_hosts": ["acme-shop"],
    "cdi_spec_dirs": ["/srv/acme-cdi"],
    "pod_infra_container_image": "acme.local:5000/pause:3",
    "pinned_images": ["acme.local/base/*"],
    "cgroup_root": "/acme-root",
    "tls_cert_file": "/srv/acme-tls.pem",
    "redis": "acme-redis:6379",
    "docker": "tcp://acme-docker:2375",
    "tracing_endpoint": "http://acme-otel:4317",
    "archive": "s3://acme-bucket/acme-folder",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_names_in_settings_are_replaced(setting: str) -> None:
    names = Names(VOCABULARY)
    find_in_settings(names, {setting: SETTINGS[setting]})
    found = Anonymiser(names, VOCABULARY, b"key").plain({setting: SETTINGS[setting]})
    assert "acme" not in str(found)
    assert setting in found


def test_a_word_with_many_dots_is_no_trap() -> None:
    """If the time grew with the cube of the length, this would take hours."""
    names = all_names(VOCABULARY, [entry({"pod": "shop/" + ".".join(["a1b"] * 1_000), "host": "x.y.z"})], ())
    word = ".".join(["q2w"] * 20_000)
    assert Anonymiser(names, VOCABULARY, b"key").text(word) == word


def test_what_a_decision_was_made_from_is_left_out() -> None:
    data = data_fields.with_input(msgspec.msgpack.encode({"pod": "shop/cart"}), [5, "Looked", b"shop"])
    given = entry({})._replace(data=with_time(data, 1_800_000_000_000))
    (found,) = anonymised(given)
    parts = data_fields.parts(found.data)
    assert (parts.recorded, parts.fields) == (False, {"pod": "namespace-1/pod-1"})
    assert time_of(found) == 1_800_000_000_000
