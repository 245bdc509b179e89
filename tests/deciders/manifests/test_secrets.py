"""Secrets: which are desired, which source gets a name first, and which pods get them."""

from __future__ import annotations

from typing import Any

from chronolet.manifests import signals, wanted
from chronolet.manifests.decider import DECIDER
from chronolet_schemas import manifests, podspec
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec
from chronolet_schemas.podspec.pod import LocalReference
from tests.deciders.given import Scene, given

A, B = "/m/a.yaml", "/m/b.yaml"
TYPE = "kubernetes.io/dockerconfigjson"
KEY = "default/regcred"


def pod(name: str = "web", *names: str, image: str = "a:1", namespace: str = "default") -> Pod:
    """Return a pod that uses the Secrets with these names."""
    references = tuple(LocalReference(name=one) for one in names or ("regcred",))
    spec = PodSpec(containers=(Container(name="app", image=image),), image_pull_secrets=references)
    return podspec.defaulted(Pod(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec))


def kept(digest: str, key: str = KEY) -> manifests.KeptSecret:
    return manifests.KeptSecret(secret=key, type=TYPE, digest=digest)


def apply(*pods: Pod, secrets: tuple[manifests.KeptSecret, ...] = (), request: str = "r1") -> manifests.ApplyPods:
    return manifests.ApplyPods(request=request, pods=pods, secrets=secrets)


def delete(*keys: str) -> manifests.DeletePods:
    return manifests.DeletePods(request="r9", pods=(), secrets=keys)


def applied(digest: str, *, source: str = "apply", replaces: str = "", key: str = KEY) -> manifests.SecretApplied:
    return manifests.SecretApplied(secret=key, type=TYPE, digest=digest, source=source, replaces=replaces)


def read(*pods: Pod, secrets: dict[str, str] | None = None, path: str = A, digest: str = "x") -> signals.FileRead:
    return signals.FileRead(
        path=path,
        digest=digest,
        pods=[signals.FilePod(uid=f"{one.key}-{path}", digest=podspec.digest(one), manifest=one) for one in pods],
        secrets=[signals.FileSecret(secret=key, type=TYPE, digest=held) for key, held in (secrets or {}).items()],
    )


def sent(scene: Scene) -> dict[str, dict[str, str]]:
    """Return the Secrets that the last step sent to pods, by pod."""
    spoken: dict[str, dict[str, str]] = {}
    for event in scene.events:
        if isinstance(event, manifests.PodApplied | manifests.PullSecretsChanged):
            spoken[event.pod] = event.pull_secrets
    return spoken


def used(scene: Scene) -> tuple[str, ...]:
    effect = scene.effects["secrets"]
    assert isinstance(effect, wanted.KeepSecrets)
    return effect.used


def after(*messages: Any) -> Scene:
    scene = given(DECIDER)
    for message in messages:
        scene.when(message)
    return scene


# --- apply and delete


def test_a_secret_is_added_changed_and_removed() -> None:
    scene = after(apply(secrets=(kept("d1"),))).then(applied("d1"))
    assert used(scene) == ("d1",)
    scene.when(apply(secrets=(kept("d1"),), request="r2")).then(manifests.SecretUnchanged(secret=KEY))
    scene.when(apply(secrets=(kept("d2"),), request="r3")).then(applied("d2", replaces="d1"))
    assert used(scene) == ("d2",)
    scene.when(delete(KEY, KEY)).then(manifests.SecretWithdrawn(secret=KEY, digest="d2", source="apply"))
    assert used(scene) == ()
    scene.when(delete(KEY)).then(
        manifests.SecretRefused(secret=KEY, source="apply", reason='secrets "default/regcred" not found')
    )


def test_the_first_of_two_secrets_of_one_name_counts() -> None:
    refused = after(apply(secrets=(kept("d1"), kept("d2")))).events[1]
    assert isinstance(refused, manifests.SecretRefused)
    assert "already defined by apply" in refused.reason


def test_an_empty_apply_is_refused() -> None:
    assert [type(event) for event in after(apply()).events] == [manifests.PodRefused]


# --- which pods get Secrets


def test_a_pod_gets_the_secrets_that_exist() -> None:
    secrets = (kept("d1"), kept("d2", "default/other"), kept("d3", "team/late"))
    scene = after(apply(pod("web", "regcred", "late", "regcred"), pod("plain", "absent"), secrets=secrets))
    assert sent(scene) == {"default/web": {"regcred": "d1"}, "default/plain": {}}


def test_a_change_of_a_secret_is_sent_to_the_pods_that_use_it() -> None:
    scene = after(apply(pod("web"), pod("db", "regcred"), pod("other", "else"), pod("far", namespace="team")))
    scene.when(apply(secrets=(kept("d1"),), request="r2"))
    assert sent(scene) == {"default/db": {"regcred": "d1"}, "default/web": {"regcred": "d1"}}
    assert sent(scene.when(apply(secrets=(kept("d1"),), request="r3"))) == {}
    scene.when(apply(pod("web", image="a:2"), secrets=(kept("d2"),), request="r4"))
    assert sent(scene) == {"default/web": {"regcred": "d2"}, "default/db": {"regcred": "d2"}}
    assert sum(isinstance(event, manifests.PullSecretsChanged) for event in scene.events) == 1, "once each"
    assert sent(scene.when(delete(KEY))) == {"default/web": {}, "default/db": {}}
    scene.when(manifests.DeletePods(request="r5", pods=("default/web",)))
    assert sent(scene.when(apply(secrets=(kept("d3"),), request="r6"))) == {"default/db": {"regcred": "d3"}}


# --- files


def test_the_secrets_of_a_file_change_with_it() -> None:
    scene = after(read(pod(), secrets={KEY: "d1"}))
    assert [type(event).__name__ for event in scene.events] == ["FileAccepted", "SecretApplied", "PodApplied"]
    assert sent(scene) == {"default/web": {"regcred": "d1"}}
    assert scene.when(read(pod(), secrets={KEY: "d1"})).events == ()
    scene.when(read(pod(), secrets={KEY: "d2"}, digest="y"))
    assert scene.events[1] == applied("d2", source=f"file:{A}", replaces="d1")
    assert sent(scene) == {"default/web": {"regcred": "d2"}}
    scene.when(read(pod(), digest="z"))
    assert sent(scene) == {"default/web": {}}
    scene.when(read(pod(), secrets={KEY: "d3"}, digest="w")).when(signals.FileGone(path=A))
    assert [type(event).__name__ for event in scene.events] == ["FileVanished", "PodWithdrawn", "SecretWithdrawn"]
    assert used(scene) == ()


def test_an_unusable_file_keeps_its_secrets() -> None:
    scene = after(read(secrets={KEY: "d1"}), signals.FileRead(path=A, digest="y", errors=("a.yaml: bad",)))
    assert used(scene) == ("d1",)
    scene.when(signals.FileGone(path=A))
    assert used(scene) == ()


def test_the_first_source_of_a_name_keeps_it() -> None:
    scene = after(read(secrets={KEY: "d1"}), apply(secrets=(kept("d2"),)))
    (refused,) = scene.events
    assert isinstance(refused, manifests.SecretRefused)
    assert refused.reason == (
        f"Secret {KEY} is already defined by file:{A}; apply cannot define a Secret of the same name"
    )
    (refused,) = scene.when(delete(KEY)).events
    assert isinstance(refused, manifests.SecretRefused)
    assert refused.reason == f"Secret {KEY} comes from file:{A}: remove it from that file, or the file, to delete it"
    scene.when(read(secrets={KEY: "d3"}, path=B))
    assert isinstance(scene.events[1], manifests.SecretRefused)
    assert scene.when(read(secrets={KEY: "d3"}, path=B)).events == (), "recorded once"


def test_a_file_that_was_refused_a_name_gets_it_once_it_is_free() -> None:
    scene = after(apply(secrets=(kept("d1"),)), read(secrets={KEY: "d2"}))
    before = scene.effects["folder"].intent
    scene.when(delete(KEY))
    assert scene.effects["folder"].intent != before
    scene.when(read(secrets={KEY: "d2"})).then(applied("d2", source=f"file:{A}"))


# --- a lost log


def adopt(*secrets: manifests.AdoptedSecret, pods: tuple[manifests.AdoptedPod, ...] = ()) -> manifests.AdoptPods:
    return manifests.AdoptPods(request="a", pods=pods, secrets=secrets)


def was_kept(digest: str, source: str = "apply") -> manifests.AdoptedSecret:
    return manifests.AdoptedSecret(secret=KEY, type=TYPE, digest=digest, source=source)


def test_adopted_secrets_are_desired_and_sent_to_their_pods() -> None:
    web = manifests.AdoptedPod(pod="default/web", uid="u", source="apply", digest="d", pull_secrets=("regcred",))
    idle = manifests.AdoptedPod(pod="default/idle", uid="v", source="apply", digest="d")
    scene = after(adopt(was_kept("d2"), was_kept("d1"), pods=(web, idle)))
    assert scene.events[0] == applied("d2"), "the first is the newest"
    assert sent(scene) == {"default/web": {"regcred": "d2"}}
    assert used(scene) == ("d2",)
    assert sent(scene.when(apply(secrets=(kept("d3"),)))) == {"default/web": {"regcred": "d3"}}


def test_a_secret_that_is_already_desired_is_not_adopted() -> None:
    scene = after(apply(secrets=(kept("d1"),)), adopt(was_kept("d2")))
    assert [type(event) for event in scene.events] == [manifests.AdoptionFinished]


def test_a_secret_of_a_file_that_vanished_is_removed_at_the_first_listing() -> None:
    scene = after(adopt(was_kept("d1", f"file:{A}")), signals.FolderListed(path="/m", files=()))
    assert scene.events[-1] == manifests.SecretWithdrawn(secret=KEY, digest="d1", source=f"file:{A}")


def test_unfitting_events_change_nothing() -> None:
    scene = after(apply(secrets=(kept("d1"),)))
    for event in (
        manifests.SecretUnchanged(secret=KEY),
        manifests.SecretWithdrawn(secret="default/absent", digest="d", source="apply"),
    ):
        assert DECIDER.evolve(scene.state, event) == scene.state
