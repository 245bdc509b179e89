"""chronolet's messages: everything stored in Redis, for chronolet and for third-party readers of its streams.

Depends on msgpack and msgspec only.
"""
