"""Bad manifest files: each is refused with an error that names the file, the path and what was found; all other files
are accepted.
"""

from typing import Any

from chronolet_schemas import manifests
from tests.e2e.node import Node, pod, shell

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


BAD: dict[str, tuple[list[Any], list[str]]] = {
    "no-yaml": (["kind: Pod\n  name: [\n"], ["no-yaml"]),
    "no-pod": ([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}], ["Deployment"]),
    "one-bad": (
        [pod("good-half"), pod("bad-half", shell("app", ports=[{"containerPort": 0}]))],
        ["containerPort", "0"],
    ),
    "wrong-type": ([pod("wrong", terminationGracePeriodSeconds="soon")], ["terminationGracePeriodSeconds", "soon"]),
    "negative": ([pod("negative", terminationGracePeriodSeconds=-1)], ["terminationGracePeriodSeconds", "-1"]),
    "no-image": ([pod("imageless", without(shell("app"), "image"))], ["spec.containers[0].image"]),
    "bad-name": ([pod("No_Such_Name")], ["metadata.name", "No_Such_Name"]),
    "bomb": ([BOMB], ["bomb"]),
    "huge": (["# " + "x" * 10_000_000 + "\n"], ["huge"]),
}
"""The documents of each file, and texts that its errors must contain, by file name."""


def test_bad_files_are_refused_with_an_error_and_others_accepted(node: Node) -> None:
    for name, (documents, _) in BAD.items():
        node.write(f"{name}.yaml", *documents)
    node.write("unknown.yaml", pod("unknown", shell("app", colour="blue")))
    node.write("fine.yaml", pod("fine"))
    node.wait_until_running("fine")

    for name, (_, texts) in BAD.items():
        path = str(node.folder / f"{name}.yaml")
        refused = node.journal.wait_for_event(manifests.FileRefused, path=path)
        message = " | ".join(refused.errors)
        assert f"{name}.yaml" in message, message
        assert all(text in message for text in texts), f"{name}: {message}"
        assert len(message) < 4000, f"{name}: {message[:300]}"
    unknown = node.journal.wait_for_event(manifests.FileAccepted, path=str(node.folder / "unknown.yaml"))
    assert "spec.containers[0].colour" in " ".join(unknown.findings)
    assert {one.partition("/")[2] for one in node.journal.pods} <= {"fine", "unknown"}

    node.write("negative.yaml", pod("negative", terminationGracePeriodSeconds=1))
    node.wait_until_running("negative")
    assert node.runs
