"""The settings of the KubeEvents' delivery.

Comes in: nothing. Goes out: a part of the settings' one table. Next: `settings`.
"""

from __future__ import annotations

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import any_text, duration, number, some_of, url

EVENT_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "event_sinks",
        "--event-sinks",
        "CHRONOLET_EVENT_SINKS",
        "where KubeEvents go, by commas: redis (what `get events` reads), log (the agent's own) [default: redis]",
        some_of("redis", "log"),
        metavar="SINKS",
    ),
    Setting(
        "event_ttl",
        "--event-ttl",
        "CHRONOLET_EVENT_TTL",
        "how long `get events` has a KubeEvent [default: 24h]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "event_stream_length",
        "--event-stream-length",
        "CHRONOLET_EVENT_STREAM_LENGTH",
        "how many changes of KubeEvents are kept for `get events` [default: 10000]",
        number(1, 10_000_000),
        metavar="NUMBER",
    ),
    Setting(
        "event_backlog",
        "--event-backlog",
        "CHRONOLET_EVENT_BACKLOG",
        "how many KubeEvents may wait for a webhook or API server; what is beyond is given up [default: 1000]",
        number(100, 1_000_000),
        metavar="NUMBER",
    ),
    Setting(
        "event_webhook_url",
        "--event-webhook-url",
        "CHRONOLET_EVENT_WEBHOOK_URL",
        "a URL that KubeEvents are posted to as JSON [default: none]",
        url("http", "https"),
        metavar="URL",
    ),
    Setting(
        "event_webhook_secret_file",
        "--event-webhook-secret-file",
        "CHRONOLET_EVENT_WEBHOOK_SECRET_FILE",
        "a file with the key that signs what is posted [default: unsigned]",
        any_text,
        metavar="PATH",
    ),
    Setting(
        "event_api_server",
        "--event-api-server",
        "CHRONOLET_EVENT_API_SERVER",
        "a Kubernetes API server to write KubeEvents to [default: none]",
        url("http", "https"),
        metavar="URL",
    ),
    Setting(
        "event_api_token_file",
        "--event-api-token-file",
        "CHRONOLET_EVENT_API_TOKEN_FILE",
        "a file with the bearer token for it [default: none]",
        any_text,
        metavar="PATH",
    ),
    Setting(
        "event_api_ca_file",
        "--event-api-ca-file",
        "CHRONOLET_EVENT_API_CA_FILE",
        "certificates that its own is checked against [default: the system's]",
        any_text,
        metavar="PATH",
    ),
    Setting(
        "event_qps",
        "--event-qps",
        "CHRONOLET_EVENT_QPS",
        "how many KubeEvents it is sent a second, 0 for all there are [default: 50]",
        number(0, 100_000),
        "eventRecordQPS",
        "NUMBER",
    ),
    Setting(
        "event_burst",
        "--event-burst",
        "CHRONOLET_EVENT_BURST",
        "how many more at once [default: 100]",
        number(1, 1_000_000),
        "eventBurst",
        "NUMBER",
    ),
)
