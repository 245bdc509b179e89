"""Destinations of KubeEvents: the agent's own log, the node's Redis, a webhook, a Kubernetes API server."""

from chronolet.adapters.kube_sinks.kubernetes import KubernetesSink
from chronolet.adapters.kube_sinks.log_lines import LogSink
from chronolet.adapters.kube_sinks.stream import StreamReader, StreamSink
from chronolet.adapters.kube_sinks.webhook import WebhookSink

__all__ = ["KubernetesSink", "LogSink", "StreamReader", "StreamSink", "WebhookSink"]
