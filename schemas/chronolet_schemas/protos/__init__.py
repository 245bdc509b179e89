"""The kubelet's gRPC interfaces: `.proto` files by the published names and numbers, and what protoc makes of them.

Comes in: nothing. Goes out: message classes, `<name>_pb2`; `scripts/protos` writes them anew. Next: whoever speaks gRPC
with a device plugin or with a reader of PodResources. Only here protobuf is needed, so only they import it.
Source: k8s.io/kubelet/pkg/apis (deviceplugin/v1beta1, pluginregistration/v1, podresources/v1).
"""
