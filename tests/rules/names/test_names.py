"""Names that Kubernetes accepts, and the names of our containers."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.rules.names import names

Check = Callable[[str], str | None]

GOOD: list[tuple[Check, list[str]]] = [
    (names.label_problem, ["a", "web-1", "0", "a" * 63, "1a"]),
    (names.subdomain_problem, ["a", "web.example.com", "a-b.c-d", "a" * 253]),
    (names.env_problem, ["A", "a.b", "_x", "A B", "1x", "-", "~!\"#$%&'()*+,-./:;<>?@[]^`{|}"]),
    (names.port_problem, ["http", "p1", "1p", "a-b-c", "a" * 15]),
    (names.label_value_problem, ["", "a", "A_b.c-d", "a" * 63]),
    (names.qualified_problem, ["app", "example.com/app", "a.b/C_d.e", "a" * 253 + "/" + "b" * 63]),
]
BAD: list[tuple[Check, list[str]]] = [
    (names.label_problem, ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "a\n", "\u00e9"]),
    (names.subdomain_problem, ["", "A", ".a", "a.", "a..b", "-a.b", "a_b", "a" * 254]),
    (names.env_problem, ["", "A=B", "\u00e9", "a\tb", "a\n", "\x7f"]),
    (names.port_problem, ["", "80", "1-2", "a--b", "-a", "a-", "A", "a" * 16, "a_b"]),
    (names.label_value_problem, ["-a", "a-", "a b", "a" * 64, "\u00e9"]),
    (names.qualified_problem, ["", "/", "a/", "/a", "a/b/c", "A/b", "a b", "a" * 64, "a" * 254 + "/b"]),
]


@pytest.mark.parametrize(("check", "good"), [(check, name) for check, all_of in GOOD for name in all_of])
def test_a_name_that_kubernetes_accepts(check: Check, good: str) -> None:
    assert check(good) is None


@pytest.mark.parametrize(("check", "bad"), [(check, name) for check, all_of in BAD for name in all_of])
def test_a_name_that_kubernetes_refuses(check: Check, bad: str) -> None:
    problem = check(bad)
    assert problem is not None
    assert "expected" in problem


def test_a_very_long_name_is_truncated_in_the_message() -> None:
    problem = names.env_problem("\u00e9" * 100_000)
    assert problem is not None
    assert len(problem) < 500


def test_a_containers_name() -> None:
    name = names.container_name(container="app", pod="web.0", namespace="team", uid="0a1b-2c", attempt=3)
    assert name == "chrono_app_web.0_team_0a1b-2c_3"


def test_a_sandboxs_name() -> None:
    name = names.container_name(container=names.SANDBOX, pod="web", namespace="default", uid="1", attempt=0)
    assert name == "chrono_POD_web_default_1_0"


LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(LABELS, LABELS, LABELS, LABELS, st.integers(0, 10**6))
def test_no_two_attempts_share_a_name(container: str, pod: str, namespace: str, uid: str, attempt: int) -> None:
    name = names.container_name(container=container, pod=pod, namespace=namespace, uid=uid, attempt=attempt)
    assert name.split("_") == ["chrono", container, pod, namespace, uid, str(attempt)]
