"""Specs on disk: complete or absent, readable only by their owner, and safe against files from other sources."""

import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from chronolet.adapters.state_folder.specs import SpecFiles
from chronolet.adapters.volumes import HostVolumes
from chronolet.ports.pods.specs import KeptSpec, SpecRefusal
from chronolet_schemas import podspec
from chronolet_schemas.pod import Ending
from chronolet_schemas.podspec import Container, EnvVar, ObjectMeta, Pod, PodSpec
from tests.schemas.podspec_strategy import pods

EXAMPLE_POD = podspec.defaulted(
    Pod(
        metadata=ObjectMeta(name="web"),
        spec=PodSpec(containers=(Container(name="app", image="busybox:1", env=(EnvVar(name="A", value="\u00e9"),)),)),
    )
)

SPEC = KeptSpec(
    node="n",
    pod=EXAMPLE_POD.key,
    uid="u1",
    source="apply",
    digest=podspec.digest(EXAMPLE_POD),
    accepted_at=1_700_000_000_000,
    manifest=EXAMPLE_POD,
)


def test_a_spec_is_kept_until_the_folder_of_its_pod_is_removed(tmp_path: Path) -> None:
    specs = SpecFiles(tmp_path)
    assert specs.all() == ([], [], {})
    specs.keep(SPEC)
    specs.keep(replace(SPEC, uid="u2"))
    (kept, other), unreadable, _ = SpecFiles(tmp_path).all()
    assert (kept, other.uid, unreadable) == (SPEC, "u2", [])
    assert podspec.digest(kept.manifest) == SPEC.digest
    (path,) = (tmp_path / "pods" / "u1").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    HostVolumes(tmp_path).remove("u1")
    assert [one.uid for one in specs.all().specs] == ["u2"]


def test_a_spec_is_written_only_when_it_changes(tmp_path: Path) -> None:
    specs = SpecFiles(tmp_path)
    specs.keep(SPEC)
    path = tmp_path / "pods" / "u1" / "pod.json"
    before = path.stat().st_ino
    specs.keep(SPEC)
    assert path.stat().st_ino == before
    specs.keep(replace(SPEC, digest="changed"))
    assert [one.digest for one in specs.all().specs] == ["changed"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"node": "n"}', b'{"uid": 7}'], ids=range(6))
def test_an_unreadable_spec_is_named(content: bytes, tmp_path: Path) -> None:
    specs = SpecFiles(tmp_path)
    specs.keep(SPEC)
    bad = tmp_path / "pods" / "bad" / "pod.json"
    bad.parent.mkdir()
    bad.write_bytes(content)
    kept, (line,), _ = specs.all()
    assert kept == [SPEC]
    assert line.startswith(f"{bad}: ")


def test_a_folder_or_the_file_of_another_pod_is_named(tmp_path: Path) -> None:
    specs = SpecFiles(tmp_path)
    specs.keep(SPEC)
    moved = tmp_path / "pods" / "moved"
    moved.mkdir()
    (moved / "pod.json").write_bytes((tmp_path / "pods" / "u1" / "pod.json").read_bytes())
    (tmp_path / "pods" / "odd" / "pod.json").mkdir(parents=True)
    kept, unreadable, _ = specs.all()
    assert kept == [SPEC]
    assert [line.partition(":")[0] for line in unreadable] == [
        str(tmp_path / "pods" / name / "pod.json") for name in ("moved", "odd")
    ]


ENDING = Ending(reason="Deleted", grace_period_seconds=30, deadline=1_700_000_030_000)


def test_the_begun_end_of_a_pod_is_kept_next_to_its_spec(tmp_path: Path) -> None:
    specs = SpecFiles(tmp_path)
    specs.keep(SPEC)
    specs.keep(replace(SPEC, uid="u2"))
    specs.end("u1", ENDING)
    specs.end("u1", sooner := replace(ENDING, deadline=1_700_000_002_000))
    specs.keep(SPEC)
    kept, unreadable, endings = SpecFiles(tmp_path).all()
    assert ([one.uid for one in kept], unreadable, endings) == (["u1", "u2"], [], {"u1": sooner})
    assert stat.S_IMODE((tmp_path / "pods" / "u1" / "end.json").stat().st_mode) == 0o600


def test_the_end_of_a_pod_that_never_ran_is_not_kept(tmp_path: Path) -> None:
    specs = SpecFiles(tmp_path)
    specs.end("u1", ENDING)
    assert specs.all() == ([], [], {})
    assert not (tmp_path / "pods").exists()
    with pytest.raises(SpecRefusal, match="is not a valid folder name"):
        specs.end("..", ENDING)


def test_an_unreadable_end_is_named_and_does_not_end_the_pod(tmp_path: Path) -> None:
    specs = SpecFiles(tmp_path)
    specs.keep(SPEC)
    (tmp_path / "pods" / "u1" / "end.json").write_bytes(b"{")
    kept, (line,), endings = specs.all()
    assert (kept, endings) == ([SPEC], {})
    assert line.startswith(f"{tmp_path / 'pods' / 'u1' / 'end.json'}: ")


def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pods").write_text("no folder")
    with pytest.raises(SpecRefusal, match="cannot be written"):
        SpecFiles(tmp_path).keep(SPEC)


@pytest.mark.parametrize("uid", ["..", "a/b", "", "."])
def test_a_uid_must_be_a_single_path_component(uid: str, tmp_path: Path) -> None:
    with pytest.raises(SpecRefusal, match="is not a valid folder name"):
        SpecFiles(tmp_path).keep(replace(SPEC, uid=uid))


def test_a_partially_written_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = SpecFiles(tmp_path)
    specs.keep(SPEC)
    monkeypatch.setattr("os.fsync", _full)
    with pytest.raises(SpecRefusal, match="No space left"):
        specs.keep(replace(SPEC, digest="changed"))
    assert specs.all() == ([SPEC], [], {})
    assert [path.name for path in (tmp_path / "pods" / "u1").iterdir()] == ["pod.json"]


def _full(_handle: int) -> None:
    raise OSError(28, "No space left on device")


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pods())
def test_any_pod_is_read_as_it_was_kept(tmp_path: Path, pod: Pod) -> None:
    spec = replace(SPEC, uid="any", pod=pod.key, manifest=pod, digest=podspec.digest(pod))
    SpecFiles(tmp_path).keep(spec)
    (kept,), unreadable, _ = SpecFiles(tmp_path).all()
    assert (kept, unreadable) == (spec, [])
    assert podspec.digest(kept.manifest) == spec.digest
