"""The rules, one by one: which words and which parts of texts are taken out, and which stay."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from chronolet.history.bundle.redaction import rules, texts
from chronolet.history.bundle.redaction.rules import NOTHING_KEPT, Kept


def listed(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


SENSITIVE = listed(
    "password DB_PASSWORD dbPasswd MYSQL_PWD passphrase api_key apiKey API-KEY x-api-key accessKey"
    " AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID secret clientSecret token AUTH_TOKEN refreshToken credential privateKey"
    " ssh_private_key auth"
    " proxy-authorization cookie dsn SENTRY_DSN connection_string signing-key key session_key pass user.pass"
)
HARMLESS_NAMES = listed(
    "name image MODE passes compass author monkey keyboard hostKeyboard tokenizer_path password_file tokenSeconds"
    " secretName secret-ref secretKeyRef log-level path encoding PASSWORD_DIR"
)


@pytest.mark.parametrize("name", SENSITIVE)
def test_a_name_says_that_its_value_is_secret(name: str) -> None:
    assert rules.is_sensitive(name)


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_a_name_says_nothing(name: str) -> None:
    assert not rules.is_sensitive(name)


@pytest.mark.parametrize(
    "word",
    listed(
        "8080 0 -1 0.5 30s 100m 64Mi 1G 50% true no auto $(HOME) $HOME ${HOME} /var/lib/web ./run ../x / 10.0.0.1:80"
        " :8080 localhost localhost:80 get sh && | <redacted-7>"
    ),
)
def test_nothing_can_hide_in_a_word(word: str) -> None:
    assert rules.is_harmless(word)


@pytest.mark.parametrize(
    "word",
    listed(
        "hunter2 123456 hunter secret /run/3a4b5c6d7e8f9a0b user:pass a,b http://x/y s3cr3t /tmp/9f8e7d6c5b4a3f2e"
        " $(a;b) $A$B x=y p@ss"
    ),
)
def test_something_may_hide_in_a_word(word: str) -> None:
    assert not rules.is_harmless(word)


def redacted(words: Sequence[str], kept: Kept = NOTHING_KEPT, *, is_command: bool = True) -> list[str]:
    """Return the words with what is taken out replaced by `*`."""
    found = dict(rules.in_arguments(list(words), kept, is_command=is_command))
    return [
        word if index not in found else f"{word[: found[index].begin]}*{word[found[index].end :]}"
        for index, word in enumerate(words)
    ]


COMMANDS = {
    "a program with numbers": ("httpd -f -p 8080 -h /www", "httpd -f -p 8080 -h /www"),
    "a flag with a value": ("redis-server --requirepass hunter2", "redis-server --requirepass *"),
    "a flag with a sensitive name takes any next word": ("x --password 1", "x --password *"),
    "a flag with an equals sign": ("x --password=1 --level=debug --port=80", "x --password=* --level=* --port=80"),
    "a short flag with its value": ("mysql -phunter2 -uroot -P3306", "mysql -p* -u* -P3306"),
    "a short flag before its value": ("redis-cli -a hunter2 ping", "redis-cli -a * *"),
    "an assignment": ("env TOKEN=1 PORT=80 NAME=x1y2z3", "env TOKEN=* PORT=80 NAME=*"),
    "a bare word": ("server production", "server *"),
    "an absolute program": ("/usr/bin/node /srv/app.js", "/usr/bin/node /srv/app.js"),
    "a program that is none": ("a;b", "*"),
    "short flags together": ("ls -la -rf", "ls -la -rf"),
    "a sensitive flag before a flag": ("x --token --verbose", "x --token *"),
    "a dash": ("cat - --", "cat - --"),
}


@pytest.mark.parametrize(("given", "expected"), COMMANDS.values(), ids=COMMANDS)
def test_words_of_a_command(given: str, expected: str) -> None:
    assert redacted(given.split()) == expected.split()


def test_a_script_is_taken_out_whole() -> None:
    assert redacted(["sh", "-c", "redis-cli -a hunter2; sleep 1"]) == ["sh", "-c", "*"]


def test_the_first_argument_is_no_program() -> None:
    assert redacted(["hunter2"], is_command=False) == ["*"]


def test_a_kept_flag_keeps_its_value() -> None:
    kept = Kept(("level", "log-*", "TOKEN"))
    words = listed("x --level debug --log-format=fancy1 --other debug TOKEN=abcdefg")
    assert redacted(words, kept) == listed("x --level debug --log-format=fancy1 --other * TOKEN=abcdefg")


TEXTS = {
    "keys": {
        "at -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- end": "at * end",
        "cut -----BEGIN PRIVATE KEY-----\nMIIE": "cut *",
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0x.abc-_1 end": "jwt * end",
        "id AKIAIOSFODNN7EXAMPLE end": "id * end",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789 x": "* x",
        "glpat-abcdefghijklmnop1234 x": "* x",
        "xoxb-1234567890-abc x": "* x",
        "sk_live_abcdefghijkl x": "* x",
    },
    "refused": {
        "x.yaml: containers[0].env[0].value: 12 is x": "x.yaml: containers[0].env[0].value: * is x",
        "a: metadata.annotations.acme/x: 47 is x": "a: metadata.annotations.acme/x: * is x",
        "a: args[0]: 'two words' is x": "a: args[0]: '*' is x",
        "a: env[1].name: 'TOKEN X=hunter2' is not allowed": "a: env[1].name: 'TOKEN X=*' is not allowed",
        "a: httpGet.httpHeaders[0].value: 99 is x": "a: httpGet.httpHeaders[0].value: * is x",
        "a: data[.dockerconfigjson]: is not base64": "a: data[.dockerconfigjson]: is not base64",
        "a: spec.containers[0].image: is missing": "a: spec.containers[0].image: is missing",
    },
    "url": {
        "dial redis://user:hunter2@db:6379/0 failed": "dial redis://*@db:6379/0 failed",
        "postgres://u:p%40ss@h/d": "postgres://*@h/d",
        "https://token@host/path": "https://*@host/path",
        'Get "http://h/x?sig=abc&b=2": EOF': 'Get "http://h/x?sig=*&b=*": EOF',
        "http://h:80/healthz": "http://h:80/healthz",
        "mail user@host": "mail user@host",
    },
    "authorization": {
        "Authorization: Bearer abc.def": "Authorization: Bearer *",
        '{"authorization": "Basic dXNlcjpwYXNz"}': '{"authorization": "Basic *"}',
        "sent Bearer abcdefghijklmnopqrst": "sent Bearer *",
        "Basic usage": "Basic usage",
        "may require authorization: server message: denied": "may require authorization: server message: denied",
    },
    "named": {
        "password=hunter2": "password=*",
        "DB_PASSWORD = 'two words' x": "DB_PASSWORD = '*' x",
        '{"apiKey":"abc","port":1}': '{"apiKey":"*","port":1}',
        "clientSecret: abc, other": "clientSecret: * other",
        '"auth": "dXNlcg=="': '"auth": "*"',
        "run --token abc --x": "run --token * --x",
        "auth=abc&x": "auth=*",
        "password=<redacted-3>": "password=<redacted-3>",
        'secret "regcred" not found': 'secret "regcred" not found',
        "Back-off restarting failed container app": "Back-off restarting failed container app",
        "Liveness probe failed: HTTP probe failed with statuscode: 500": (
            "Liveness probe failed: HTTP probe failed with statuscode: 500"
        ),
    },
}


@pytest.mark.parametrize(
    ("rule", "given", "expected"), [(rule, *pair) for rule, texts in TEXTS.items() for pair in texts.items()]
)
def test_texts(rule: str, given: str, expected: str) -> None:
    found = sorted(texts.in_text(given), key=lambda span: span.begin)
    text, at = "", 0
    for span in found:
        if span.begin >= at:
            text, at = f"{text}{given[at : span.begin]}*", span.end
    assert text + given[at:] == expected
    assert {span.rule for span in found} <= {rule, "url", "userinfo"}


@pytest.mark.parametrize(
    "piece", ["a", "-", "password", "--token ", "x://", "?a=", "Basic ", "eyJ", "1a", "'\"", "key="]
)
def test_a_long_text_is_no_trap(piece: str) -> None:
    """If the time grew with the square of the length, this would take hours."""
    text = piece * (1_000_000 // len(piece))
    assert len(list(texts.in_text(text))) <= len(text)
    assert not rules.is_harmless(text)


def test_the_page_lists_every_rule() -> None:
    page = (Path(__file__).parents[3] / "docs" / "bundles.md").read_text()
    rows = re.findall(r"^\| `([a-z]+)` \| (.*) \|$", page.partition("| rule |")[2].partition("\n\n")[0], re.MULTILINE)
    assert dict(rows) == rules.RULES
    assert set(TEXTS) <= set(rules.RULES)
