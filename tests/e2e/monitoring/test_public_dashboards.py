"""Public dashboards and alerts in docs/monitoring.md: each metric in a row marked as working exists on a real node."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.docs.markdown import ROOT
from tests.e2e.http_pages import get
from tests.e2e.monitoring.conftest import PORT, Watched
from tests.e2e.monitoring.prometheus import rule_groups
from tests.support.scratch import wait_until

PAGES = ("/metrics", "/metrics/probes", "/metrics/cadvisor", "/metrics/state")
FROM_PROMETHEUS = {"up"}
AFTER_A_FAULT = {"kubelet_runtime_operations_errors_total", "storage_operation_errors_total"}
"""Counters that have no series before their first error; until then, a page has only their TYPE line."""


NO_PANEL = {
    "kubelet_http_requests_total",
    "kubelet_http_requests_duration_seconds_count",
    "kubelet_pod_worker_start_duration_seconds_count",
    "kubelet_running_pods",
    "prober_probe_total",
}
"""Further kubelet metrics to check."""


class Row(NamedTuple):
    """One row of a table. `state`: whether the panel or alert works, or why it is empty."""

    panel: str
    metrics: tuple[str, ...]
    state: str


def rows() -> list[Row]:
    """Return the rows of all tables below the heading `Public dashboards and alerts`."""
    text = (ROOT / "docs" / "monitoring.md").read_text().partition("## Public dashboards and alerts")[2]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    found = [Row(one[0], tuple(re.findall(r"`([^`]+)`", one[1])), one[2]) for one in cells if one[1] != "metric"]
    return [one for one in found if not one.panel.startswith("---")]


WORKING = sorted({metric for row in rows() if row.state.startswith("works") for metric in row.metrics})


def test_each_row_says_whether_it_works_or_why_not() -> None:
    assert len(rows()) > 50
    assert len(WORKING) > 40
    for row in rows():
        assert row.state.startswith("works") or re.match(r"empty(:| until) \S", row.state), row
        assert row.metrics or row.state.startswith("empty"), row


def test_metrics_that_work_exist_on_the_nodes_pages(watched: Watched) -> None:
    records = {rule["record"] for group in rule_groups("recording.yml") for rule in group["rules"]}
    wanted = (set(WORKING) | NO_PANEL) - records - FROM_PROMETHEUS
    missing: set[str] = set()

    def all_exist() -> bool:
        pages = "".join(get(watched.node, PORT, path).body.decode() for path in PAGES)
        series = set(re.findall(r"^([a-zA-Z_:]+)(?:\{| )", pages, re.MULTILINE))
        types = set(re.findall(r"^# TYPE (\S+)", pages, re.MULTILINE))
        missing.clear()
        missing.update(name for name in wanted if name not in (types if name in AFTER_A_FAULT else series))
        return not missing

    try:
        wait_until(all_exist, "the metrics of the table")
    except TimeoutError:
        pytest.fail(f"not on the pages: {sorted(missing)}")
