"""Parse Pod manifests. No I/O: the caller has read the file.

Input: YAML (one or more documents), JSON or KYAML with Pods, Secrets, or Lists of them. Output: `Parsed`: pods and
Secrets, or errors. Next: the `manifests` actor's folder watch and the CLI's `apply`. Corresponds to
pkg/kubelet/config/common.go (tryDecodeSinglePod, tryDecodePodList).
"""

from chronolet.adapters.manifest_files.reader import MAX_BYTES, Parsed, read_documents

__all__ = ["MAX_BYTES", "Parsed", "read_documents"]
