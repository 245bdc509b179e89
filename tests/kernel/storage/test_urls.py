"""URLs of Redis servers: which are accepted, which are refused, and that no error contains a password."""

import pytest

from chronolet.kernel.storage.redis import urls
from chronolet.kernel.storage.redis.connection import Address
from chronolet.kernel.storage.redis.store import RedisStore

GOOD = {
    "unix:///run/redis.sock": "unix:///run/redis.sock",
    "unix://:S3CRET@/run/redis.sock?db=3": "unix:///run/redis.sock",
    "redis://h": "redis://h",
    "redis://me:S3CRET@h:1/2": "redis://h:1/2",
    "redis://h?username=me&password=S3CRET": "redis://h",
    "redis://:S3CRET%2F%3F%23%40@[::1]:6379": "redis://[::1]:6379",
    "rediss://h?ssl_ca_certs=/ca&ssl_cert_reqs=none&ssl_check_hostname=false": "rediss://h",
}


@pytest.mark.parametrize("url", GOOD)
def test_the_address_is_shown_without_password_and_options(url: str) -> None:
    assert Address(url).where == GOOD[url]
    assert urls.has_password(url) == ("S3CRET" in url)
    Address(url).connection(1.0)


BAD = {
    "x:S3CRET@h": "not a URL of a Redis server",
    "http://S3CRET@h": "not a URL of a Redis server",
    "redis://x:S3CRET@[::1": "not a URL of a Redis server",
    "redis://:S3C/RET@h": "not a URL of a Redis server",
    "redis://:S3C#RET@h": "not a URL of a Redis server",
    "redis://:12?S3CRET@h": "not a URL of a Redis server",
    "redis://u/S3CRET@h": "not a URL of a Redis server",
    "redis://h:x": "not a URL of a Redis server",
    "redis://h:0": "not a URL of a Redis server",
    "redis://": "names no host",
    "redis://:S3CRET@": "names no host",
    "redis://:S3CRET@h/name": "names a database that is not a number",
    "unix://:S3CRET@": "does not name a socket",
    "unix://run/redis.sock": "does not name a socket by its absolute path",
    "redis://:S3CRET@h?foo=bar": "the unknown option 'foo', expected one of db, username, password",
    "redis://:S3CRET@h?foo": "the unknown option 'foo'",
    "redis://h:12?S3CRET": "an unknown option, expected",
    "redis://h?socket_timeout=1": "the unknown option 'socket_timeout'",
    "redis://h?ssl_ca_certs=/ca": "the unknown option 'ssl_ca_certs'",
    "rediss://h?ssl_cert_reqs=S3CRET": "the option 'ssl_cert_reqs' with an invalid value",
    "redis://h?db=S3CRET": "the option 'db' with an invalid value",
    "redis://h?password=": "the option 'password' with an invalid value",
    "redis://h?password=S3CRET&password=x": "the same option twice",
}


@pytest.mark.parametrize("url", BAD)
def test_the_error_for_an_unusable_url_does_not_show_its_password(url: str) -> None:
    with pytest.raises(urls.RedisUrlError) as caught:
        RedisStore(url, "n")
    assert BAD[url] in str(caught.value)
    assert "S3C" not in str(caught.value)


def test_a_password_from_another_setting_is_put_into_the_url() -> None:
    assert urls.with_password("rediss://h:1/2?ssl_cert_reqs=none", "a/b") == (
        "rediss://:a%2Fb@h:1/2?ssl_cert_reqs=none"
    )
    assert urls.with_password("unix:///s", "@") == "unix://:%40@/s"
