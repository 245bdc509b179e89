"""The spans that an OTLP collector receives, and an agent that lacks the extra `otel`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from chronolet.history.start_steps import Step
from chronolet.history.start_trace import Trace
from chronolet.node.composition.wiring import build
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError
from chronolet.node.tracing.exporter import OtlpExporter
from chronolet.ports.spans import Span
from tests.node.tracing.collector import attributes, collector
from tests.support.scratch import wait_until

CALL = Span(entity="default/web", cause="1-2", what="docker.create", at=1_100, milliseconds=250.5)
TRACE = Trace(
    pod="default/web",
    began=1_000,
    ended=3_000,
    milliseconds=2_000,
    steps=(
        Step(name="start the sandbox", began=1_000, ended=2_000, spans=(CALL,)),
        Step(name="pull busybox:1", began=1_000, ended=3_000, note="no such host", failed=True),
    ),
    culprit="the pull took longest",
)


def test_a_trace_has_a_span_for_the_start_each_step_and_each_call() -> None:
    with collector() as received:
        exporter = OtlpExporter(received.endpoint, "n", "1.0")
        exporter.export(TRACE, "u1")
        exporter.stop()
        root = received.wait_for("start default/web")
        assert (root.start_time_unix_nano, root.end_time_unix_nano) == (1_000_000_000, 3_000_000_000)
        assert not root.parent_span_id
        about = attributes(root)
        assert about["chronolet.culprit"] == "the pull took longest"
        assert (about["k8s.namespace.name"], about["k8s.pod.name"], about["k8s.pod.uid"]) == ("default", "web", "u1")
        steps = {span.name: span for span in received.below(root)}
        assert set(steps) == {"start the sandbox", "pull busybox:1"}
        assert steps["pull busybox:1"].status.message == "no such host"
        assert root.status.code == steps["pull busybox:1"].status.code == 2
        assert steps["start the sandbox"].status.code == 0
        (call,) = received.below(steps["start the sandbox"])
        assert (call.name, call.end_time_unix_nano - call.start_time_unix_nano) == ("docker.create", 250_500_000)
        assert attributes(call)["chronolet.position"] == "1-2"
        assert {span.trace_id for span in received.spans} == {root.trace_id}
        (resource,) = received.resources
        assert (resource["service.name"], resource["k8s.node.name"]) == ("chronolet", "n")


def test_two_starts_are_two_traces() -> None:
    with collector() as received:
        exporter = OtlpExporter(received.endpoint, "n", "1.0")
        exporter.export(TRACE, "u1")
        exporter.export(TRACE, "u2")
        exporter.stop()
        wait_until(lambda: len(received.spans) == 8, "both traces")
        assert len({span.trace_id for span in received.spans}) == 2


def test_a_collector_that_is_down_is_logged_and_delays_nothing() -> None:
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        exporter = OtlpExporter("http://127.0.0.1:9/v1/traces", "n", "1.0")
        exporter.export(TRACE, "u1")
        wait_until(lambda: any(line["event"] == "traces" for line in lines), "the SDK's message")
        exporter.stop()


def test_nothing_is_loaded_by_default() -> None:
    code = "import chronolet.node.main, sys; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "chronolet.node.tracing.exporter")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    settings = Settings(
        node="n",
        root_dir=tmp_path,
        redis="unix:///none",
        actors=("pod",),
        tracing_endpoint="http://127.0.0.1:1/v1/traces",
    )
    with pytest.raises(SettingsError, match=r"opentelemetry is not installed; .*chronolet\[otel\]"):
        build(settings)
