"""chronolet's messages and the names of its Redis keys, for chronolet and for third-party readers of its streams.

Depends only on msgspec, and for `protos` on protobuf.
"""
