"""chronolet's messages: everything that stands in Redis, for us and for others who read our streams.

Depends on msgpack and msgspec only.
"""
