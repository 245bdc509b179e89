"""Whatever another program has written as an entry's data, decoding it succeeds or raises Undecodable."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet_schemas import codec, pod, registry
from chronolet_schemas.envelope import Event

TYPE = registry.type_of(pod.SandboxBlocked)
SOUND = codec.encode(pod.SandboxBlocked(pod="default/web", uid="u", message="m"))


@pytest.mark.parametrize(
    "data",
    [
        SOUND.replace(b"default", b"\xff\xfefault"),
        SOUND.replace(b"\xa1m", b"\x01"),
        b"\x81\x80\x01",
        b"\x91" * 5_000,
        b"\x81\xa1x" + b"\x91" * 5_000,
        b"",
    ],
    ids=[
        "text that is not UTF-8",
        "a number as text",
        "a map as key",
        "deep lists",
        "deep lists in a field",
        "nothing",
    ],
)
def test_data_that_does_not_fit_is_undecodable(data: bytes) -> None:
    with pytest.raises(codec.Undecodable, match=r"pod\.SandboxBlocked"):
        codec.decode(TYPE, data, Event)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (TYPE, True),
        (TYPE.partition("@")[0] + "@99", False),
        ("pod.Unheard@1", False),
        ("elsewhere.Unheard@1", False),
        ("pod.SandboxBlocked", False),
        ("pod.SandboxBlocked@0", False),
        ("pod.SandboxBlocked@-1", False),
        ("pod.SandboxBlocked@\u00b2", False),
        ("", False),
    ],
)
def test_types_of_other_releases_and_programs_are_not_known(name: str, *, known: bool) -> None:
    assert codec.is_known(name) is known


@given(st.binary(max_size=60), st.integers(0, len(SOUND) - 1))
def test_changed_data_is_decoded_or_undecodable(noise: bytes, at: int) -> None:
    for data in (noise, SOUND[:at] + noise + SOUND[at + 1 :]):
        with suppress(codec.Undecodable):
            assert isinstance(codec.decode(TYPE, data, Event), Event)
