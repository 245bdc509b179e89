"""Registry credentials from Secrets and from the Docker configuration of the agent's user, including credential
helpers.

Input: an image, digests of Secrets. Output: `Found`. For each pull, the files are read and `docker-credential-<name>
get` is run again, so that a `docker login` takes effect immediately. Next: the `pod` actor's image worker. Corresponds
to pkg/credentialprovider/config.go, pkg/credentialprovider/secrets, and the docker CLI's use of credential helpers.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from chronolet.ports.pods.secrets import Secrets
from chronolet.ports.runtime.registries import Found
from chronolet.rules.names.image_names import ImageName
from chronolet.rules.names.registry_keys import (
    BadDockerConfig,
    Credential,
    DockerConfig,
    docker_config,
    matching,
    of_secret,
    server_of,
)

HELPER_SECONDS = 10.0
_TOKEN = "<token>"  # noqa: S105 - the user name by which a helper marks its secret as a token
_UNKNOWN = b"credentials not found"


class _HelperOutput(msgspec.Struct):
    Username: str = ""
    Secret: str = ""


_helper_output = msgspec.json.Decoder(_HelperOutput)


def docker_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of Docker's own client configuration."""
    named = environ.get("DOCKER_CONFIG", "")
    return Path(named) if named else Path("~/.docker").expanduser()


class HostKeyring:
    """Implements `ports.runtime.registries.Keyring` for this machine: stored Secrets first, then Docker's configuration
    in `folder`.
    """

    def __init__(self, folder: Path, secrets: Secrets, helper_seconds: float = HELPER_SECONDS) -> None:
        self._file = folder / "config.json"
        self._secrets = secrets
        self._helper_seconds = helper_seconds

    def find(self, image: ImageName, digests: Sequence[str]) -> Found:
        secrets = {digest: self._given(digest) for digest in digests}
        given = matching((one.keys for one in secrets.values() if one is not None), image)
        own, remark = self._own(image)
        return Found(
            credentials=tuple(dict.fromkeys((*given, *own))),
            lost=tuple(digest for digest, one in secrets.items() if one is None),
            remarks=(remark,) if remark else (),
        )

    def _given(self, digest: str) -> DockerConfig | None:
        secret = self._secrets.read(digest)
        try:
            return of_secret(secret.type, secret.data) if secret is not None else None
        except BadDockerConfig:
            return None

    def _own(self, image: ImageName) -> tuple[Sequence[Credential], str]:
        """Return the credentials from `docker login`, starting with that of a credential helper; and the reason why
        some are unavailable, empty if there is none.
        """
        try:
            config = docker_config(self._file.read_bytes())
        except FileNotFoundError:
            return (), ""
        except OSError as error:
            return (), f"{self._file}: cannot be read: {error.strerror or error}"
        except BadDockerConfig as error:
            return (), f"{self._file}: {error}"
        server = server_of(image)
        program = config.helpers.get(server) or config.helpers.get(image.domain) or config.store
        credential, remark = self._from_helper(program, server) if program else (None, "")
        kept = matching((config.keys,), image)
        return ((credential,) if credential else ()) + tuple(kept), remark

    def _from_helper(self, name: str, server: str) -> tuple[Credential | None, str]:
        """Run the credential helper; return its credential, or None and the reason. The helper's own output is never
        part of the reason, because it may contain secrets.
        """
        program = f"docker-credential-{name}"
        try:
            done = subprocess.run(
                [program, "get"],
                input=server.encode(),
                capture_output=True,
                timeout=self._helper_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, f"{program}: no answer within {self._helper_seconds:g} s"
        except OSError as error:
            return None, f"{program}: cannot be run: {error.strerror or error}"
        if done.returncode:
            unknown = _UNKNOWN in done.stdout or _UNKNOWN in done.stderr
            return None, "" if unknown else f"{program}: ended with status {done.returncode}"
        try:
            output = _helper_output.decode(done.stdout)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None, f"{program}: its answer cannot be read"
        if output.Username == _TOKEN:
            return Credential(identity_token=output.Secret), ""
        return Credential(username=output.Username, password=output.Secret), ""
