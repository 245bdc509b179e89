"""The files in monitoring/ match the runbooks and the script that generates the dashboards."""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType

import pytest
import yaml

from tests.docs.markdown import ROOT

MONITORING = ROOT / "monitoring"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script that writes the dashboards."""
    spec = importlib.util.spec_from_file_location("dashboards", ROOT / "scripts" / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def alerts() -> list[str]:
    groups = yaml.safe_load((MONITORING / "rules" / "alerts.yml").read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def test_each_alert_has_a_section_in_the_runbooks_and_refers_to_it() -> None:
    assert len(alerts()) == len(set(alerts())) > 10
    sections = re.findall(r"^## (\S+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    assert sections == alerts()
    text = (MONITORING / "rules" / "alerts.yml").read_text()
    assert re.findall(r"runbook: docs/runbooks.md#(\S+)", text) == [one.lower() for one in alerts()]


def test_dashboards_are_as_the_script_writes_them(generator: ModuleType) -> None:
    for name, one in generator.DASHBOARDS.items():
        path = MONITORING / "dashboards" / f"{name}.json"
        assert path.read_text() == generator.rendered(one), "run scripts/dashboards.py"
    assert {path.stem for path in (MONITORING / "dashboards").iterdir()} == set(generator.DASHBOARDS)


def test_panels_do_not_overlap_and_have_queries(generator: ModuleType) -> None:
    for one in generator.DASHBOARDS.values():
        panels = json.loads(generator.rendered(one))["panels"]
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
        assert len(set(places)) == len(panels) == len({panel["id"] for panel in panels})
        assert all(panel["targets"] for panel in panels)
        assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
