"""Finds the names in the settings of a process, which the log has since the process began.

Input: plain settings. Output: `Names`. Every setting is named here, so that a new one is not forgotten. Pure. Next:
`anonymiser`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chronolet.history.bundle.anonymising import names as finding
from chronolet.history.bundle.anonymising.names import Names

CLASSES: Mapping[str, str] = {
    "node": "node",
    "process_name": "process",
    "address": "host",
    "http_allowed_hosts": "host",
    "pod_infra_container_image": "image",
    "pinned_images": "image",
    "node_labels": "label",
    **dict.fromkeys(("archive", "docker", "redis"), "server"),
    **dict.fromkeys(("event_api_server", "event_webhook_url", "tracing_endpoint"), "server"),
    **dict.fromkeys(("cdi_spec_dirs", "cgroup_root", "kubelet_dir", "pod_logs_dir", "pod_manifest_path"), "path"),
    **dict.fromkeys(
        ("client_ca_file", "http_token_file", "machine_id_file", "redis_password_file", "root_dir"), "path"
    ),
    **dict.fromkeys(("event_api_ca_file", "event_api_token_file", "event_webhook_secret_file"), "path"),
    **dict.fromkeys(("redis_password_file", "tls_cert_file", "tls_private_key_file"), "path"),
}
"""The settings with names. A server is a URL, whose hosts are found in any text, or a path."""
KEPT = frozenset(
    """
    actors admission allowed_unsafe_sysctls cgroup_driver cgroups_per_qos container_gc_parallel container_gc_period
    cpu_cfs_quota cpu_cfs_quota_period enforce_node_allocatable event_backlog event_burst event_qps event_sinks
    event_stream_length event_ttl eviction_hard file_check_frequency housekeeping_interval image_gc_high_threshold
    image_gc_low_threshold image_gc_period image_maximum_gc_age image_pull_progress_deadline image_usage_period
    kube_reserved log_format max_container_restart_period max_device_plugins max_parallel_image_pulls
    max_parallel_starts max_pods maximum_dead_containers maximum_dead_containers_per_container
    memory_reservation_policy memory_throttling_factor minimum_container_ttl_duration minimum_image_ttl_duration
    node_affinity node_capacity pleg_relist_period pleg_relist_threshold pod_max_pids port probe_history_max_age
    probe_kill_hold probe_kills_per_minute probe_overload_protection probe_unjudged_limit qos_reserved redis_appendfsync
    redis_maxmemory redis_password serialize_image_pulls shards system_reserved topology_manager_policy
    wait_for_resources
    """.split()  # noqa: SIM905 - a list of sixty strings is harder to read
)
"""The settings without names: numbers, words of chronolet, and amounts of resources. The log has no password."""


def find_in_settings(names: Names, settings: Mapping[str, Any]) -> None:
    """Add the names in plain settings. Those that this release does not know are searched like any text."""
    for setting, value in settings.items():
        class_ = CLASSES.get(setting, "")
        if class_ == "label" and isinstance(value, dict):
            finding.find_labels(names, value, "label")
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and class_:
                _add(names, class_, text)


def _add(names: Names, class_: str, text: str) -> None:
    if class_ == "image":
        finding.add_image(names, text)
    elif class_ in ("path", "server"):
        for part in re.split(r"[/:]", text.partition("://")[2] or text):
            names.add("path" if class_ == "path" or "://" not in text or "///" in text else "host", part)
            names.add("path", part.rpartition(".")[0])
    else:
        names.add(class_, text)
