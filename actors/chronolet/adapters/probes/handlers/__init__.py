"""The four types of probes (exec, HTTP GET, TCP and gRPC), and code that HTTP and TCP probes share."""
