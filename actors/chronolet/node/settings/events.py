"""The settings for KubeEvent delivery.

Input: none. Output: part of the settings table. Next: `table`.
"""

from __future__ import annotations

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import any_text, duration, number, some_of, url

EVENT_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "event_sinks",
        "--event-sinks",
        "CHRONOLET_EVENT_SINKS",
        "sinks for KubeEvents, comma-separated: redis (read by `get events`), log (the agent's log) [default: redis]",
        some_of("redis", "log"),
        metavar="SINKS",
    ),
    Setting(
        "event_ttl",
        "--event-ttl",
        "CHRONOLET_EVENT_TTL",
        "how long KubeEvents are kept for `get events` [default: 24h]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "event_stream_length",
        "--event-stream-length",
        "CHRONOLET_EVENT_STREAM_LENGTH",
        "how many new and changed KubeEvents are kept for `get events` [default: 10000]",
        number(1, 10_000_000),
        metavar="NUMBER",
    ),
    Setting(
        "event_backlog",
        "--event-backlog",
        "CHRONOLET_EVENT_BACKLOG",
        "maximum backlog of KubeEvents for a webhook or API server; the excess is dropped [default: 1000]",
        number(100, 1_000_000),
        metavar="NUMBER",
    ),
    Setting(
        "event_webhook_url",
        "--event-webhook-url",
        "CHRONOLET_EVENT_WEBHOOK_URL",
        "URL to post KubeEvents to as JSON [default: none]",
        url("http", "https"),
        metavar="URL",
    ),
    Setting(
        "event_webhook_secret_file",
        "--event-webhook-secret-file",
        "CHRONOLET_EVENT_WEBHOOK_SECRET_FILE",
        "file with the key that signs webhook requests [default: unsigned]",
        any_text,
        metavar="PATH",
    ),
    Setting(
        "event_api_server",
        "--event-api-server",
        "CHRONOLET_EVENT_API_SERVER",
        "Kubernetes API server to write KubeEvents to [default: none]",
        url("http", "https"),
        metavar="URL",
    ),
    Setting(
        "event_api_token_file",
        "--event-api-token-file",
        "CHRONOLET_EVENT_API_TOKEN_FILE",
        "file with the bearer token for --event-api-server [default: none]",
        any_text,
        metavar="PATH",
    ),
    Setting(
        "event_api_ca_file",
        "--event-api-ca-file",
        "CHRONOLET_EVENT_API_CA_FILE",
        "PEM file with the certificate authorities for --event-api-server [default: the system's]",
        any_text,
        metavar="PATH",
    ),
    Setting(
        "event_qps",
        "--event-qps",
        "CHRONOLET_EVENT_QPS",
        "maximum rate of KubeEvents per second sent to --event-api-server; 0: no limit [default: 50]",
        number(0, 100_000),
        "eventRecordQPS",
        "NUMBER",
    ),
    Setting(
        "event_burst",
        "--event-burst",
        "CHRONOLET_EVENT_BURST",
        "maximum burst of KubeEvents, with --event-qps as the long-term rate [default: 100]",
        number(1, 1_000_000),
        "eventBurst",
        "NUMBER",
    ),
)
