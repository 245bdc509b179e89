"""The settings of the collection of containers and images: their names, and what they may say together.

Comes in: nothing. Goes out: a part of the settings' one table. Next: `settings`. Source: cmd/kubelet/app/options, and
the KubeletConfiguration fields that the kubelet documents.
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
        "how old a dead container is at least before it may go, from its creation on [default: 0s]",
        duration_or_none,
        metavar="DURATION",
    ),
    Setting(
        "maximum_dead_containers_per_container",
        "--maximum-dead-containers-per-container",
        "CHRONOLET_MAXIMUM_DEAD_CONTAINERS_PER_CONTAINER",
        "how many dead ones of each container of a pod are kept, below 0 any number [default: 1]",
        count_or_any,
        metavar="NUMBER",
    ),
    Setting(
        "maximum_dead_containers",
        "--maximum-dead-containers",
        "CHRONOLET_MAXIMUM_DEAD_CONTAINERS",
        "how many dead containers are kept on the node, below 0 any number [default: -1]",
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
        "how many dead containers are removed at a time [default: 8]",
        number(1, 8),
        metavar="NUMBER",
    ),
    Setting(
        "pod_logs_dir",
        "--pod-logs-dir",
        "CHRONOLET_POD_LOGS_DIR",
        "folder with links to the logs of this node's pods: others' go [default: logs/pods below --root-dir]",
        folder,
        "podLogsDir",
        "FOLDER",
    ),
    Setting(
        "image_gc_high_threshold",
        "--image-gc-high-threshold",
        "CHRONOLET_IMAGE_GC_HIGH_THRESHOLD",
        "how full Docker's disk is in percent when images go; 100: never for want of room [default: 85]",
        number(0, 100),
        "imageGCHighThresholdPercent",
        "PERCENT",
    ),
    Setting(
        "image_gc_low_threshold",
        "--image-gc-low-threshold",
        "CHRONOLET_IMAGE_GC_LOW_THRESHOLD",
        "how full it may be when enough of them are gone [default: 80]",
        number(0, 100),
        "imageGCLowThresholdPercent",
        "PERCENT",
    ),
    Setting(
        "minimum_image_ttl_duration",
        "--minimum-image-ttl-duration",
        "CHRONOLET_MINIMUM_IMAGE_TTL_DURATION",
        "how long an image is known at least before it may go [default: 2m]",
        duration_or_none,
        "imageMinimumGCAge",
        "DURATION",
    ),
    Setting(
        "image_maximum_gc_age",
        "--image-maximum-gc-age",
        "CHRONOLET_IMAGE_MAXIMUM_GC_AGE",
        "an image not used for longer goes, however much room there is; 0s: none does [default: 0s]",
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
        "how often it is seen which images are used [default: 30s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pinned_images",
        "--pinned-images",
        "CHRONOLET_PINNED_IMAGES",
        "images that never go, by commas, with * as in busybox:* [default: only that of the sandboxes]",
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
    """What is wrong with them together, by the flag's name; empty if nothing is."""
    if wrong := containers.problem(container_policy):
        return f"--minimum-container-ttl-duration: {wrong}"
    wrong = images.problem(image_policy)
    return f"{_FLAGS[wrong.partition(':')[0]]}: {wrong}" if wrong else ""
