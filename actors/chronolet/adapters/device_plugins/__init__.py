"""Device plugins over gRPC on unix sockets; see `ports.devices.plugins`. Entry point: `plugins`."""
