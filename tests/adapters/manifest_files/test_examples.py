"""The examples of the README are read in strict mode without any error or finding."""

from pathlib import Path

import pytest

from chronolet.adapters.manifest_files import read_documents
from chronolet.rules.expansion import environment, expand_all

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


def test_there_are_two_examples() -> None:
    assert [path.name for path in EXAMPLES] == ["clock.yaml", "web.yaml"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_honoured_completely(path: Path) -> None:
    parsed = read_documents(path.read_bytes(), path.name, strict=True)
    assert parsed.errors == ()
    (pod,) = parsed.pods
    for container in pod.spec.containers:
        assert container.image == "chronolet/busybox:1"
        assert container.image_pull_policy == "IfNotPresent"
        # Shell scripts are full of `$(...)`, which Kubernetes leaves unchanged unless it names a variable.
        assert expand_all(container.args, environment(container.env)) == container.args
