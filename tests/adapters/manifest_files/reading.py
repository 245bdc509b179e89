"""Helpers for tests that read manifests: texts of pods, and the pods or errors read from them."""

import textwrap

from chronolet.adapters.manifest_files import Parsed, read_documents
from chronolet_schemas.podspec import Pod

HEAD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n"
POD = HEAD + "spec:\n  containers:\n  - name: app\n    image: nginx:1\n"


def read(text: str | bytes) -> Parsed:
    return read_documents(text, "web.yaml")


def errors(text: str | bytes) -> list[str]:
    """Return the errors as lines. A file with errors must yield no pods."""
    parsed = read(text)
    assert parsed.errors
    assert parsed.pods == ()
    return [str(error) for error in parsed.errors]


def pods(text: str | bytes) -> tuple[Pod, ...]:
    parsed = read(text)
    assert [str(error) for error in parsed.errors] == []
    return parsed.pods


def spec(text: str) -> str:
    """Return the manifest of a pod whose container also has these lines."""
    return POD + textwrap.indent(textwrap.dedent(text), "    ")


def only(text: str) -> Pod:
    (pod,) = pods(text)
    return pod


def plain(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
