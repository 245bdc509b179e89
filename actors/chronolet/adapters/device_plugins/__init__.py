"""Device plugins over gRPC on unix sockets: see `ports.device_plugins`. Importing it loads grpc."""

from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins, Patience

__all__ = ["GrpcDevicePlugins", "Patience"]
