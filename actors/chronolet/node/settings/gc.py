"""The settings for container and image garbage collection, and a check that they are consistent.

Input: none. Output: part of the settings table. Next: `table`. Source: cmd/kubelet/app/options, and the
KubeletConfiguration fields that the kubelet documents.
"""

from __future__ import annotations

from chronolet.container_gc import policy as containers
from chronolet.image_gc import policy as images
from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import count_or_any, duration, duration_or_none, folder, number, texts
from chronolet_schemas import container_gc, image_gc

GC_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "minimum_container_ttl_duration",
        "--minimum-container-ttl-duration",
        "CHRONOLET_MINIMUM_CONTAINER_TTL_DURATION",
        "minimum age of a dead container, counted from its creation, before it may be removed [default: 0s]",
        duration_or_none,
        metavar="DURATION",
    ),
    Setting(
        "maximum_dead_containers_per_container",
        "--maximum-dead-containers-per-container",
        "CHRONOLET_MAXIMUM_DEAD_CONTAINERS_PER_CONTAINER",
        "maximum number of dead instances to keep per container of a pod; negative: no limit [default: 1]",
        count_or_any,
        metavar="NUMBER",
    ),
    Setting(
        "maximum_dead_containers",
        "--maximum-dead-containers",
        "CHRONOLET_MAXIMUM_DEAD_CONTAINERS",
        "maximum number of dead containers to keep on the node; negative: no limit [default: -1]",
        count_or_any,
        metavar="NUMBER",
    ),
    Setting(
        "container_gc_period",
        "--container-gc-period",
        "CHRONOLET_CONTAINER_GC_PERIOD",
        "how often dead containers are collected [default: 1m]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "container_gc_parallel",
        "--container-gc-parallel",
        "CHRONOLET_CONTAINER_GC_PARALLEL",
        "how many dead containers are removed concurrently [default: 8]",
        number(1, 8),
        metavar="NUMBER",
    ),
    Setting(
        "pod_logs_dir",
        "--pod-logs-dir",
        "CHRONOLET_POD_LOGS_DIR",
        "folder with links to the logs of this node's pods; folders of other pods are removed [default: logs/pods in "
        "--root-dir]",
        folder,
        "podLogsDir",
        "FOLDER",
    ),
    Setting(
        "image_gc_high_threshold",
        "--image-gc-high-threshold",
        "CHRONOLET_IMAGE_GC_HIGH_THRESHOLD",
        "usage of Docker's disk in percent that triggers image collection; 100: disk usage never does [default: 85]",
        number(0, 100),
        "imageGCHighThresholdPercent",
        "PERCENT",
    ),
    Setting(
        "image_gc_low_threshold",
        "--image-gc-low-threshold",
        "CHRONOLET_IMAGE_GC_LOW_THRESHOLD",
        "usage of Docker's disk in percent at which image collection stops [default: 80]",
        number(0, 100),
        "imageGCLowThresholdPercent",
        "PERCENT",
    ),
    Setting(
        "minimum_image_ttl_duration",
        "--minimum-image-ttl-duration",
        "CHRONOLET_MINIMUM_IMAGE_TTL_DURATION",
        "minimum time since an image was first seen before it may be removed [default: 2m]",
        duration_or_none,
        "imageMinimumGCAge",
        "DURATION",
    ),
    Setting(
        "image_maximum_gc_age",
        "--image-maximum-gc-age",
        "CHRONOLET_IMAGE_MAXIMUM_GC_AGE",
        "remove images unused for longer than this, whatever the disk usage; 0s: never [default: 0s]",
        duration_or_none,
        "imageMaximumGCAge",
        "DURATION",
    ),
    Setting(
        "image_gc_period",
        "--image-gc-period",
        "CHRONOLET_IMAGE_GC_PERIOD",
        "how often images are collected [default: 5m]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "image_usage_period",
        "--image-usage-period",
        "CHRONOLET_IMAGE_USAGE_PERIOD",
        "how often the agent records which images are in use [default: 30s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pinned_images",
        "--pinned-images",
        "CHRONOLET_PINNED_IMAGES",
        "images never to remove, comma-separated, * as a wildcard as in busybox:* [default: only the sandbox image]",
        texts,
        metavar="PATTERNS",
    ),
)

_FLAGS = {
    "high threshold": "--image-gc-high-threshold",
    "low threshold": "--image-gc-low-threshold",
    "minimum age": "--minimum-image-ttl-duration",
    "maximum age": "--image-maximum-gc-age",
}


def problem_of_collection(container_policy: container_gc.Policy, image_policy: image_gc.Policy) -> str:
    """Return the problem with these policies, preceded by the flag that causes it; empty if there is none."""
    if wrong := containers.problem(container_policy):
        return f"--minimum-container-ttl-duration: {wrong}"
    wrong = images.problem(image_policy)
    return f"{_FLAGS[wrong.partition(':')[0]]}: {wrong}" if wrong else ""
