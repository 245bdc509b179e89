"""Parse Pod manifests: bytes of a file in, pods or errors out. No I/O: the caller has read the file.

Input: YAML (several documents), JSON or KYAML with Pods and Lists of them. Output: `Parsed`. Next: the `manifests`
actor's folder watch and the CLI's `apply`. Corresponds to pkg/kubelet/config/common.go (tryDecodeSinglePod,
tryDecodePodList).
"""

from chronolet.adapters.manifest_files.reader import MAX_BYTES, Parsed, read_documents

__all__ = ["MAX_BYTES", "Parsed", "read_documents"]
