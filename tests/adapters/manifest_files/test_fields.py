"""Fields of a pod: duplicate and unknown fields, nulls, wrong types."""

import textwrap

from chronolet.adapters.manifest_files import read_documents
from tests.adapters.manifest_files.reading import HEAD, POD, errors, only, pods, read, spec


def test_duplicate_keys_are_errors() -> None:
    assert errors(f"{POD}    image: other\n  restartPolicy: Never\n  restartPolicy: Never\n") == [
        "web.yaml: spec.containers[0].image: duplicate key",
        "web.yaml: spec.restartPolicy: duplicate key",
    ]


def test_unknown_fields_are_findings() -> None:
    parsed = read(f"{POD}    imagePullpolicy: Never\n  nonsense: 1\nstatuss: {{}}\n")
    assert parsed.errors == ()
    assert [str(finding) for finding in parsed.findings] == [
        "spec.containers[0].imagePullpolicy: unknown field, did you mean imagePullPolicy?",
        "spec.nonsense: unknown field",
        "statuss: unknown field",
    ]
    assert {finding.severity for finding in parsed.findings} == {"warning"}
    assert {finding.pod for finding in parsed.findings} == {"default/web"}


def test_strict_rejects_fields_that_are_unknown_or_not_honoured() -> None:
    text = f"{POD}  nonsense: 1\n  hostUsers: false\n"
    assert len(read(text).pods) == 1
    parsed = read_documents(text, "web.yaml", strict=True)
    assert parsed.pods == ()
    assert [error.path for error in parsed.errors] == ["spec.nonsense", "spec.hostUsers"]
    assert len(read_documents(POD, "web.yaml", strict=True).pods) == 1


def test_null_means_absent() -> None:
    text = spec("command:\nports: null\nresources: ~\n") + "  volumes:\n  restartPolicy:\nstatus:\n"
    assert pods(text) == pods(POD)


def test_null_in_a_map_of_texts_is_an_empty_text() -> None:
    assert only(HEAD + "  labels:\n    a:\n" + POD.removeprefix(HEAD)).metadata.labels == {"a": ""}


def test_an_empty_text_means_the_default_choice() -> None:
    assert pods(spec("imagePullPolicy: ''\n")) == pods(POD)


def test_a_status_is_ignored_but_must_be_a_map() -> None:
    assert pods(f"{POD}status: {{phase: Running, nonsense: 1}}\n") == pods(POD)
    assert errors(f"{POD}status: 7\n") == ["web.yaml: status: 7 is a number, expected a map"]


# --- wrong types


def test_all_wrong_types_are_reported_together_without_consequential_errors() -> None:
    text = HEAD + textwrap.dedent(
        """
        spec:
          hostPID: 1
          affinity: []
          tolerations: {}
          restartPolicy: Sometimes
          dnsPolicy: 7
          volumes:
          - 3
          - name: [v]
          containers:
          - name: 1
            image: {}
            command: sh
            args: [1, x, null]
            env: [A=B]
            ports:
            - {containerPort: "80", hostPort: 70000, protocol: tcp}
            resources: {limits: {cpu: [1]}}
            volumeMounts:
            - {name: v, mountPath: /v, readOnly: "yes"}
            livenessProbe: {httpGet: {port: 1.5}}
          - null
        """
    )
    assert [error.removeprefix("web.yaml: spec.").partition(",")[0] for error in errors(text)] == [
        "hostPID: 1 is a number",
        "affinity: found a list",
        "tolerations: found a map",
        "restartPolicy: 'Sometimes' is not allowed",
        "dnsPolicy: 7 is a number",
        "volumes[0]: 3 is a number",
        "volumes[1].name: found a list",
        "containers[0].name: 1 is a number",
        "containers[0].image: found a map",
        "containers[0].command: 'sh' is text",
        "containers[0].args[0]: 1 is a number",
        "containers[0].args[2]: found null",
        "containers[0].env[0]: 'A=B' is text",
        "containers[0].ports[0].containerPort: '80' is text",
        "containers[0].ports[0].protocol: 'tcp' is not allowed",
        "containers[0].resources.limits.cpu: found a list",
        "containers[0].volumeMounts[0].readOnly: 'yes' is text",
        "containers[0].livenessProbe.httpGet.port: 1.5 is a number",
        "containers[1]: found null",
        "containers[0].ports[0].hostPort: 70000 is above 65535",
    ]


def test_a_port_may_be_a_name_or_a_number() -> None:
    for port in ("http", "80"):
        ports = "ports: [{name: http, containerPort: 80}]\n"
        assert pods(spec(f"{ports}livenessProbe: {{tcpSocket: {{port: {port}}}}}\n"))
    assert errors(spec("livenessProbe: {tcpSocket: {port: 99999999999}}\n")) == [
        "web.yaml: spec.containers[0].livenessProbe.tcpSocket.port: 99999999999 is above 2147483647"
    ]


def test_metadata_and_spec_must_be_maps() -> None:
    assert errors("apiVersion: v1\nkind: Pod\nmetadata: []\nspec: 7\n") == [
        "web.yaml: metadata: found a list, expected a map",
        "web.yaml: spec: 7 is a number, expected a map",
    ]


def test_uninterpreted_fields_are_normalized() -> None:
    pod = only(f"{POD}  affinity: {{a: [1, null, {{b: null, c: 1.5}}], d: null}}\n")
    assert pod.spec.affinity == {"a": [1, {"c": 1.5}]}
    assert errors(f"{POD}  affinity: {{a: [1, {2**53 + 1}]}}\n") == [
        f"web.yaml: spec.affinity.a[1]: {2**53 + 1} is a number, expected at most {2**53}"
    ]
    (error,) = errors(f"{POD}  affinity: {{a: {{b: {-(2**60)}}}}}\n")
    assert error.startswith("web.yaml: spec.affinity.a.b: ")


def test_a_long_text_is_truncated_in_the_message() -> None:
    (error,) = errors(f"{POD}  priority: {'x' * 1000}\n")
    assert error == f"web.yaml: spec.priority: {'x' * 60!r}... is text, expected a whole number"
