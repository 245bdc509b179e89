"""Traces of pod starts for OpenTelemetry. Off by default; `exporter` is imported only when tracing is on."""
