"""The table of all settings of a node agent: those defined here, in `common`, and in the partial tables.

Input: none. Output: each setting with its names, parser and help text. Next: `resolving`.
Source: cmd/kubelet/app/options and the KubeletConfiguration fields that the kubelet documents.
"""

from __future__ import annotations

from chronolet.node.settings.admission import ADMISSION_SETTINGS
from chronolet.node.settings.common import DOCKER, EVERYWHERE, MACHINE_ID_FILE
from chronolet.node.settings.events import EVENT_SETTINGS
from chronolet.node.settings.gc import GC_SETTINGS
from chronolet.node.settings.http import HTTP_SETTINGS
from chronolet.node.settings.participants import ADMISSION
from chronolet.node.settings.probes import PROBE_SETTINGS
from chronolet.node.settings.setting import Setting
from chronolet.node.settings.settings import ALL_ACTORS, Settings
from chronolet.node.settings.shard_counts import SHARD_COUNTS
from chronolet.node.settings.shares import SHARES
from chronolet.node.settings.values import (
    any_text,
    boolean,
    duration,
    duration_between,
    folder,
    folders,
    number,
    one_of,
    process_name,
    some_of,
    text,
    url,
)

__all__ = ["ADMISSION", "ALL_ACTORS", "SETTINGS", "Setting", "Settings", "setting"]

SETTINGS: tuple[Setting, ...] = (
    *EVERYWHERE,
    Setting(
        "redis_appendfsync",
        "--redis-appendfsync",
        "CHRONOLET_REDIS_APPENDFSYNC",
        "fsync policy of the agent's own Redis: always or everysec [default: always]",
        one_of("always", "everysec"),
        metavar="WORD",
    ),
    Setting(
        "redis_maxmemory",
        "--redis-maxmemory",
        "CHRONOLET_REDIS_MAXMEMORY",
        "memory limit in MiB of the agent's own Redis, from its next start on [default: a quarter of the machine's "
        "memory]",
        number(64, 1 << 20),
        metavar="MEBIBYTES",
    ),
    Setting(
        "actors",
        "--actors",
        "CHRONOLET_ACTORS",
        f"actor kinds to host, comma-separated [default: {','.join(ALL_ACTORS)}]",
        some_of(*ALL_ACTORS),
        metavar="KINDS",
    ),
    Setting(
        "process_name",
        "--process-name",
        "CHRONOLET_PROCESS_NAME",
        "name of this process, which it keeps when it is restarted; unique on the node [default: a generated one]",
        process_name,
        metavar="NAME",
    ),
    SHARD_COUNTS,
    DOCKER,
    MACHINE_ID_FILE,
    Setting(
        "pod_manifest_path",
        "--pod-manifest-path",
        "CHRONOLET_POD_MANIFEST_PATH",
        "folder or file with the Pod manifests to run [default: none]",
        any_text,
        "staticPodPath",
        "PATH",
    ),
    Setting(
        "file_check_frequency",
        "--file-check-frequency",
        "CHRONOLET_FILE_CHECK_FREQUENCY",
        "how often manifests are rescanned even without a change notification [default: 20s]",
        duration,
        "fileCheckFrequency",
        "DURATION",
    ),
    Setting(
        "pod_infra_container_image",
        "--pod-infra-container-image",
        "CHRONOLET_POD_INFRA_CONTAINER_IMAGE",
        "image of the sandbox containers that hold the pods' namespaces [default: a small built-in one]",
        text,
        metavar="IMAGE",
    ),
    Setting(
        "serialize_image_pulls",
        "--serialize-image-pulls",
        "CHRONOLET_SERIALIZE_IMAGE_PULLS",
        "true: pull one image at a time; false: pull in parallel [default: true]",
        boolean,
        "serializeImagePulls",
        "BOOL",
    ),
    Setting(
        "max_parallel_image_pulls",
        "--max-parallel-image-pulls",
        "CHRONOLET_MAX_PARALLEL_IMAGE_PULLS",
        "maximum number of parallel image pulls; needs --serialize-image-pulls=false [default: no limit]",
        number(1, 1_000),
        "maxParallelImagePulls",
        "NUMBER",
    ),
    Setting(
        "image_pull_progress_deadline",
        "--image-pull-progress-deadline",
        "CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE",
        "cancel an image pull that makes no progress for this long [default: 1m]",
        duration,
        metavar="DURATION",
    ),
    *HTTP_SETTINGS,
    Setting(
        "max_container_restart_period",
        "--max-container-restart-period",
        "CHRONOLET_MAX_CONTAINER_RESTART_PERIOD",
        "longest back-off of a crashing container, from 1s to 300s; one below 10s is the first back-off, too [default: "
        "300s]",
        duration_between(1_000, 300_000),
        "crashLoopBackOff.maxContainerRestartPeriod",
        "DURATION",
    ),
    Setting(
        "housekeeping_interval",
        "--housekeeping-interval",
        "CHRONOLET_HOUSEKEEPING_INTERVAL",
        "how often the resource usage of the node, its pods and containers is sampled [default: 10s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pleg_relist_period",
        "--pleg-relist-period",
        "CHRONOLET_PLEG_RELIST_PERIOD",
        "how often containers are relisted, in addition to Docker's events [default: 10s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pleg_relist_threshold",
        "--pleg-relist-threshold",
        "CHRONOLET_PLEG_RELIST_THRESHOLD",
        "age of the last relist above which the node counts as unhealthy [default: 3m]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "admission",
        "--admission",
        "CHRONOLET_ADMISSION",
        "actor kinds that pods wait for before they start or become ready, comma-separated, whichever process hosts "
        f"them [default: {','.join(ADMISSION)}]",
        some_of(*ADMISSION),
        metavar="KINDS",
    ),
    Setting(
        "kubelet_dir",
        "--kubelet-dir",
        "CHRONOLET_KUBELET_DIR",
        "folder in which device plugins and monitoring agents look for the node's sockets [default: /var/lib/kubelet, "
        "or kubelet in --root-dir if that is not /var/lib/chronolet]",
        folder,
        metavar="FOLDER",
    ),
    Setting(
        "max_device_plugins",
        "--max-device-plugins",
        "CHRONOLET_MAX_DEVICE_PLUGINS",
        "maximum number of registered device plugins; further registrations are refused [default: 256]",
        number(1, 10_000),
        metavar="NUMBER",
    ),
    Setting(
        "wait_for_resources",
        "--wait-for-resources",
        "CHRONOLET_WAIT_FOR_RESOURCES",
        "true: a pod waits for devices that a plugin may still register and for host ports that another pod holds; "
        "false: the pod is rejected, as by the kubelet [default: true]",
        boolean,
        metavar="BOOL",
    ),
    Setting(
        "topology_manager_policy",
        "--topology-manager-policy",
        "CHRONOLET_TOPOLOGY_MANAGER_POLICY",
        "none, or best-effort: give a container devices on the same NUMA nodes where possible [default: none]",
        one_of("none", "best-effort"),
        "topologyManagerPolicy",
        "WORD",
    ),
    Setting(
        "cdi_spec_dirs",
        "--cdi-spec-dirs",
        "CHRONOLET_CDI_SPEC_DIRS",
        "folders with CDI specifications, comma-separated [default: /etc/cdi,/var/run/cdi]",
        folders,
        metavar="FOLDERS",
    ),
    *SHARES,
    *PROBE_SETTINGS,
    *ADMISSION_SETTINGS,
    Setting(
        "log_format",
        "--log-format",
        "CHRONOLET_LOG_FORMAT",
        "format of the agent's log: text or json [default: text]",
        one_of("text", "json"),
        "logging.format",
        "WORD",
    ),
    Setting(
        "tracing_endpoint",
        "--tracing-endpoint",
        "CHRONOLET_TRACING_ENDPOINT",
        "URL of an OpenTelemetry collector for traces of pod starts (OTLP over HTTP) [default: no traces]",
        url("http", "https"),
        metavar="URL",
    ),
    *EVENT_SETTINGS,
    *GC_SETTINGS,
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """Return the setting named `name`. Raises KeyError if there is none."""
    return _BY_NAME[name]
