"""Sends traces of pod starts to an OpenTelemetry collector: OTLP over HTTP, with OpenTelemetry's SDK.

Input: traces. Output: protobuf messages to the collector, from a thread of the SDK. Next: the collector. Only this
module imports the SDK, which the extra `otel` installs. This module is imported only if `--tracing-endpoint` is set.
"""

from __future__ import annotations

import logging

import structlog
from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from chronolet.history.start_steps import Step
from chronolet.history.start_trace import Trace

CALL_SECONDS = 3.0
"""The time limit of an export, retries included. At shutdown, the SDK exports all queued spans, within 30 seconds."""
BATCH_MILLISECONDS = 1_000
_NANOSECONDS = 1_000_000

log = structlog.get_logger("chronolet.tracing")


class OtlpExporter:
    """Implements `follower.Exporter`."""

    def __init__(self, endpoint: str, node: str, version: str) -> None:
        """`endpoint`: the URL for traces, such as `http://127.0.0.1:4318/v1/traces`."""
        _forward_messages()
        about = {"service.name": "chronolet", "service.version": version, "k8s.node.name": node}
        self._provider = TracerProvider(resource=Resource(about), shutdown_on_exit=False)
        sender = OTLPSpanExporter(endpoint=endpoint, timeout=CALL_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(sender, schedule_delay_millis=BATCH_MILLISECONDS))
        self._tracer = self._provider.get_tracer("chronolet")

    def export(self, one: Trace, uid: str) -> None:
        """See `follower.Exporter`."""
        namespace, _, name = one.pod.partition("/")
        about = {"k8s.namespace.name": namespace, "k8s.pod.name": name, "k8s.pod.uid": uid}
        root = self._tracer.start_span(
            f"start {one.pod}",
            context=api.set_span_in_context(api.INVALID_SPAN),
            start_time=one.began * _NANOSECONDS,
            attributes={**about, "chronolet.culprit": one.culprit},
        )
        for step in one.steps:
            self._step(step, root, one.ended, about)
        if any(step.failed for step in one.steps):
            root.set_status(api.StatusCode.ERROR, one.culprit)
        root.end(one.ended * _NANOSECONDS)

    def stop(self) -> None:
        """See `follower.Exporter`."""
        self._provider.shutdown()

    def _step(self, step: Step, root: api.Span, ended: int, about: dict[str, str]) -> None:
        below = api.set_span_in_context(root)
        span = self._tracer.start_span(
            step.name, context=below, start_time=step.began * _NANOSECONDS, attributes={**about, "note": step.note}
        )
        for call in step.spans:
            attributes = {**about, "chronolet.position": call.cause}
            began = call.at * _NANOSECONDS
            inner = self._tracer.start_span(
                call.what, context=api.set_span_in_context(span), start_time=began, attributes=attributes
            )
            inner.end(began + round(call.took(ended) * _NANOSECONDS))
        if step.failed:
            span.set_status(api.StatusCode.ERROR, step.note)
        span.end((step.ended or ended) * _NANOSECONDS)


class _ToLog(logging.Handler):
    """Writes the SDK's messages to the agent's log."""

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("traces", message=record.getMessage())


def _forward_messages() -> None:
    sdk = logging.getLogger("opentelemetry")
    if not any(isinstance(one, _ToLog) for one in sdk.handlers):
        sdk.addHandler(_ToLog(logging.WARNING))
        sdk.propagate = False
