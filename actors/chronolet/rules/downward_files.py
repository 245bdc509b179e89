"""The contents of files in downwardAPI volumes, and the limit on their total size. Pure.

Input: a Pod, where it runs. Output: the text of a file, or `TooLargeError`. Next: `mounting`, `size_findings`.
Source: pkg/volume/downwardapi/downwardapi.go (CollectData).
"""

from __future__ import annotations

from chronolet.rules import downward
from chronolet.rules.validation.expanded_sizes import MAX_TOTAL_BYTES, TooLargeError, text_bytes
from chronolet_schemas.podspec import DownwardFile, EnvVarSource, Pod


def content(item: DownwardFile, pod: Pod, place: downward.Place) -> str:
    """Return the text of one file. Raises downward.UnknownReferenceError."""
    source = EnvVarSource(field_ref=item.field_ref, resource_field_ref=item.resource_field_ref)
    return downward.value(source, pod, pod.spec.containers[0], place)


def check_files(pod: Pod, place: downward.Place) -> None:
    """Check the total size of the pod's files, since each file may contain all annotations. Builds one file at a time.

    Raises TooLargeError at the file that exceeds the limit.
    """
    total = 0
    for index, volume in enumerate(pod.spec.volumes):
        for number, item in enumerate(volume.downward_api.items if volume.downward_api else ()):
            total += _bytes(item, pod, place)
            if total > MAX_TOTAL_BYTES:
                message = (
                    f"the downwardAPI files up to this one hold {total} bytes, above the pod's limit {MAX_TOTAL_BYTES}"
                )
                raise TooLargeError(f"volumes[{index}].downwardAPI.items[{number}]", message)


def _bytes(item: DownwardFile, pod: Pod, place: downward.Place) -> int:
    try:
        return text_bytes(content(item, pod, place)) if pod.spec.containers else 0
    except ValueError:
        return 0  # an unknown field or an invalid amount: reported elsewhere, at its own path
