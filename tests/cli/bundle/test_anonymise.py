"""`chronolet bundle anonymise`: the same states and relations under other names."""

import json
from pathlib import Path
from typing import Any

import pytest

from chronolet_schemas import pod
from tests.cli.bundle.test_bundle import READINGS, on, saved
from tests.cli.support.histories import APP, UID, WEB, accepted, recorded
from tests.cli.support.written_node import WrittenNode


@pytest.mark.parametrize("options", [(), ("--from", "#12")])
def test_an_anonymised_bundle_has_the_same_states_under_other_names(
    node: WrittenNode, tmp_path: Path, options: tuple[str, ...]
) -> None:
    node.write("pod/shop/cart", accepted("cart", "shop", containers=[{"name": "billing", "image": "reg.local/cart:1"}]))
    node.write(WEB, recorded("Pulling", 'Pulling image "reg.local/cart:1" for shop/cart at 10.0.0.7'))
    path, other = saved(node, tmp_path, *options), tmp_path / "other"
    result = node.run("bundle", "anonymise", str(path), str(other))
    assert (result.status, result.errors) == (0, "")
    before = json.loads(on(node, path, "get", "pods", "-A", "-o", "json").output)
    after = json.loads(on(node, other, "get", "pods", "-A", "-o", "json").output)
    assert shape(before) == shape(after)
    everything = "".join(on(node, other, *words).output for words in (*READINGS[:-1], ("log", "-o", "json"), ()))
    for name in ("shop", "cart", "billing", "reg.local", "10.0.0.7", UID):
        assert name not in everything
    assert "namespace-1/pod-" in everything
    assert "(names are replaced)" in on(node, other).output
    statuses = [one["status"] for one in after["items"]]
    assert [one["phase"] for one in statuses] == [one["status"]["phase"] for one in before["items"]]


def shape(value: Any) -> Any:
    """Return plain data with every text replaced, in an order that does not depend on names."""
    if isinstance(value, dict):
        return sorted((str(type(held)), repr(shape(held))) for held in value.values())
    if isinstance(value, list):
        return sorted(repr(shape(item)) for item in value)
    return "text" if isinstance(value, str) else value


def test_a_pod_can_be_found_by_its_new_name(node: WrittenNode, tmp_path: Path) -> None:
    node.write(
        "pod/default/cart",
        accepted("cart"),
        pod.ContainerBlocked(
            **{**APP, "pod": "default/cart"}, attempt=0, reason="CreateContainerConfigError", message="m"
        ),
    )
    path, other = saved(node, tmp_path), tmp_path / "other"
    assert node.run("bundle", "anonymise", str(path), str(other)).status == 0
    assert on(node, other, "get", "pod", "cart").status == 1
    rows = on(node, other, "get", "pods", "--no-headers").output.splitlines()
    name = next(row.split()[0] for row in rows if "CreateContainerConfigError" in row)
    assert on(node, other, "describe", "pod", name).output.startswith(f"Name:             {name}\n")
    assert (
        on(node, other, "log", "--pod", name).output.count("\n")
        == on(node, path, "log", "--pod", "cart").output.count("\n")
        == 2
    )
