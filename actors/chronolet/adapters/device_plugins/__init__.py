"""Device plugins over gRPC on unix sockets; see `ports.device_plugins`. Entry point: `plugins`."""
