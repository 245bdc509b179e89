"""Sizes of expanded texts, computed without building the texts, and the refusal of texts that would be too large."""

import sys
from collections.abc import Mapping
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.rules import downward
from chronolet.rules.downward_files import check_files
from chronolet.rules.expansion import environment, expand, expand_all
from chronolet.rules.validation.expanded_sizes import (
    MAX_PATH_BYTES,
    MAX_STRING_BYTES,
    MAX_TOTAL_BYTES,
    TooLargeError,
    check,
    check_path,
    check_words,
    environment_sizes,
    expanded_bytes,
    text_bytes,
    words_bytes,
)
from chronolet.rules.validation.size_findings import findings
from chronolet_schemas.podspec import (
    BLOCKING,
    Container,
    DownwardAPIVolume,
    DownwardFile,
    EnvVar,
    EnvVarSource,
    ExecAction,
    ObjectMeta,
    Pod,
    PodSpec,
    Probe,
    Volume,
    VolumeMount,
)
from chronolet_schemas.podspec.container import ObjectFieldSelector, ResourceFieldSelector

NAMES = st.sampled_from(["A", "B", "C", "X"])
TEXTS = st.lists(
    st.sampled_from(["$(A)", "$(B)", "$(C)", "$(X)", "$$", "$", "(", ")", "a", "\u00e9", "\U0001f600", "$$(A)"])
)
VALUES = TEXTS.map("".join)
VARIABLES = st.lists(st.builds(EnvVar, name=NAMES, value=VALUES), max_size=8)


def resolved(source: EnvVarSource) -> str:
    return source.field_ref.field_path if source.field_ref else ""


def reference(path: str) -> EnvVarSource:
    return EnvVarSource(field_ref=ObjectFieldSelector(field_path=path))


def bomb(count: int, start: str = "aaaaaaaaaa") -> tuple[EnvVar, ...]:
    """Return variables, each of which expands to twice the length of the previous one."""
    doubling = (EnvVar(name=f"A{number}", value=f"$(A{number - 1})" * 2) for number in range(1, count))
    return (EnvVar(name="A0", value=start), *doubling)


def pod(container: Container, **metadata: Mapping[str, str]) -> Pod:
    return Pod(metadata=ObjectMeta(name="web", namespace="default", **metadata), spec=PodSpec(containers=(container,)))


@given(VALUES, st.dictionaries(NAMES, VALUES))
def test_a_size_is_that_of_the_text_that_is_built(text: str, variables: dict[str, str]) -> None:
    sizes = {name: len(value.encode()) for name, value in variables.items()}
    assert expanded_bytes(text, sizes) == len(expand(text, variables).encode())


@given(VARIABLES, st.dictionaries(NAMES, VALUES), VALUES, st.lists(VALUES, max_size=3))
def test_sizes_of_an_environment_and_of_words_are_those_of_the_built_texts(
    variables: list[EnvVar], outside: dict[str, str], path: str, words: list[str]
) -> None:
    variables.append(EnvVar(name="B", value_from=reference(path)))
    built = {**outside, **environment(variables, resolved)}
    sizes = environment_sizes(variables, resolved, outside)
    assert sizes == {name: len(value.encode()) for name, value in built.items()}
    assert words_bytes("args", words, sizes) == sum(len(word.encode()) + 1 for word in expand_all(words, built))


def test_a_bomb_is_refused_at_its_first_large_variable_with_little_work() -> None:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with pytest.raises(TooLargeError) as raised:
            environment_sizes(bomb(40), resolved)
    finally:
        sys.setprofile(None)
    assert raised.value.path == "env[14]"
    assert str(raised.value) == (
        "env[14]: variable A14 has 163845 bytes once expanded, above 131072, Linux's limit for one string"
    )
    assert 0 < calls < 1000


def test_a_string_may_be_as_long_as_linux_allows() -> None:
    exact = EnvVar(name="NAME", value="v" * (MAX_STRING_BYTES - len("NAME=") - 1))
    assert environment_sizes((exact,), resolved) == {"NAME": len(exact.value)}
    with pytest.raises(TooLargeError, match=r"env\[0\]: variable NAME has 131073 bytes"):
        environment_sizes((EnvVar(name="NAME", value=exact.value + "v"),), resolved)
    assert words_bytes("args", ("w" * (MAX_STRING_BYTES - 1),), {}) == MAX_STRING_BYTES
    with pytest.raises(TooLargeError, match=r"args\[1\]: this word has 131073 bytes"):
        words_bytes("args", ("", "w" * MAX_STRING_BYTES), {})


def test_references_and_variables_of_plugins_are_bounded_too() -> None:
    variable = EnvVar(name="F", value_from=reference("x" * MAX_STRING_BYTES))
    with pytest.raises(TooLargeError, match=r"env\[0\]: variable F has 131075 bytes"):
        environment_sizes((variable,), resolved)
    with pytest.raises(TooLargeError, match=r"^variable P of a device plugin has 131075 bytes"):
        environment_sizes((), resolved, {"P": "x" * MAX_STRING_BYTES})


def test_the_total_counts_all_strings_with_their_ends() -> None:
    strings = [EnvVar(name=f"V{number}", value="v" * (128 * 1024 - 4)) for number in range(7)]
    rest = MAX_TOTAL_BYTES - 7 * 128 * 1024
    fitting = Container(env=tuple(strings), command=("c" * 9,), args=("$(X)" + "a" * (rest - 10 - 5),))
    check(fitting, environment_sizes(fitting.env, resolved))
    more = Container(env=tuple(strings), command=("c" * 10,), args=fitting.args)
    with pytest.raises(TooLargeError, match=r"^environment, command and arguments together have 1048577 bytes"):
        check(more, environment_sizes(more.env, resolved))


def test_a_probe_and_a_path_have_limits() -> None:
    check_words("command", ("w" * 1000,), {})
    with pytest.raises(TooLargeError, match=r"^command: 1100000 bytes once expanded, above 1048576"):
        check_words("command", ("w" * 99_999,) * 11, {})
    check_path("p", "$(A)", {"A": MAX_PATH_BYTES})
    with pytest.raises(TooLargeError, match=r"^p: 4097 bytes once expanded, above 4096"):
        check_path("p", "$(A)b", {"A": MAX_PATH_BYTES})


def test_half_of_a_surrogate_pair_has_a_size() -> None:
    assert text_bytes("\ud800") == 3


def test_findings_name_the_container_the_field_and_the_limit() -> None:
    found = list(findings(pod(Container(name="app", env=bomb(40)))))
    assert [(one.path, one.severity, one.pod) for one in found] == [
        ("spec.containers[0].env[14]", BLOCKING, "default/web")
    ]
    assert "above 131072" in found[0].message


def test_findings_of_the_total_are_of_the_whole_container() -> None:
    found = list(findings(pod(Container(name="app", args=("w" * 99_999,) * 11))))
    assert [one.path for one in found] == ["spec.containers[0]"]


def test_findings_of_paths_and_probes() -> None:
    large = EnvVar(name="A", value="a" * 5000)
    probe = Probe(exec=ExecAction(command=("sh", "$(A)" * 30)))
    container = Container(
        name="app",
        env=(large,),
        volume_mounts=(VolumeMount(name="v", mount_path="/v", sub_path_expr="$(A)"),),
        liveness_probe=probe,
        readiness_probe=Probe(),
    )
    assert [one.path for one in findings(pod(container))] == [
        "spec.containers[0].volumeMounts[0].subPathExpr",
        "spec.containers[0].livenessProbe.exec.command[1]",
    ]


def test_values_of_the_downward_api_count_as_far_as_the_manifest_shows_them() -> None:
    annotated = EnvVar(name="F", value_from=reference("metadata.annotations['a']"))
    unknown = EnvVar(name="U", value_from=reference("metadata.nothing"))
    no_amount = EnvVar(
        name="N", value_from=EnvVarSource(resource_field_ref=ResourceFieldSelector(resource="limits.cpu", divisor="x"))
    )
    container = Container(name="app", env=(unknown, no_amount, annotated))
    assert [one.path for one in findings(pod(container, annotations={"a": "x" * 200_000}))] == [
        "spec.containers[0].env[2]"
    ]
    assert not list(findings(pod(container, annotations={"a": "x"})))


def files(count: int, path: str, *, containers: tuple[Container, ...] = (Container(name="app"),)) -> Pod:
    item = DownwardFile(path="f", field_ref=ObjectFieldSelector(field_path=path))
    volumes = (Volume(name="plain"), Volume(name="d", downward_api=DownwardAPIVolume(items=(item,) * count)))
    return Pod(
        metadata=ObjectMeta(name="web", namespace="default", annotations={"a": "x" * 200_000}),
        spec=PodSpec(containers=containers, volumes=volumes),
    )


def test_each_file_of_a_downward_volume_is_bounded_by_itself() -> None:
    found = list(findings(files(50_000, "metadata.annotations")))
    assert [one.path for one in found] == ["spec.volumes[1].downwardAPI.items[5]"]
    assert "hold 1200024 bytes, above the pod's limit 1048576" in found[0].message
    check_files(files(5, "metadata.annotations"), downward.Place())
    check_files(files(5, "metadata.nothing"), downward.Place())
    check_files(files(5, "metadata.annotations", containers=()), downward.Place())
