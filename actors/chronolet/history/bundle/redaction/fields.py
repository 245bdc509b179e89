"""The names of fields for which there is a rule: events, states and manifests share them.

Input: none. Output: sets of names. Next: `redactor`, which applies the rules.
"""

ENV = "env"
ENV_MAPS = frozenset({"envs"})
ARGUMENTS = frozenset({"command", "args"})
HEADERS = frozenset({"httpHeaders", "http_headers"})
ANNOTATIONS = frozenset({"annotations", "userAnnotations", "user_annotations"})
DRIVERS = frozenset(
    {
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "csi",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "iscsi",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    }
)
KEPT_IN_DRIVERS = frozenset({"driver", "fsType", "volumeType"})
BY_NAME_OF_SECRET = frozenset({"secrets", "pull_secrets", "pullSecrets"})
"""Maps from names of Secrets to digests or states: neither are secrets."""
MAPS = ENV_MAPS | ANNOTATIONS | DRIVERS | BY_NAME_OF_SECRET
ABOUT_SECRETS = BY_NAME_OF_SECRET | {"imagePullSecrets", "serviceAccountToken", "tokens"}
"""Fields with names, paths and counts."""
SYSCTLS = "sysctls"
HTTP = frozenset({"httpGet", "http_get"})
NAMES = frozenset(
    {
        "container",
        "hostname",
        "image",
        "image_id",
        "key",
        "name",
        "namespace",
        "node",
        "pod",
        "resource",
        "secret",
        "secretName",
    }
)
"""Fields whose values are names. What is a name is only searched for if it is surely a secret."""
FREE_TEXTS = frozenset({"message", "error", "errors", "output", "findings", "left_alone"})
"""Fields with texts for people, which may have secrets within."""
