"""The files of docs/deploy say what is so: images, settings, commands, addresses, rights and limits are looked up."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import metadata, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

import recollect
from chroma_process import CHROMA
from kubernetes_objects import assert_restricted, unknown_fields
from places import ROOT
from recollect import App, Settings
from recollect.doors.cli.main import whole
from recollect.doors.http import openapi, server
from recollect.doors.http.team import TeamAccess
from recollect.setting_texts import variable

DEPLOY = ROOT / "docs" / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
CADDYFILE = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = sorted(file for file in (DEPLOY / "kubernetes").glob("*.yaml") if file.stem != "kustomization")
OBJECTS: list[dict[str, Any]] = [
    one for file in MANIFESTS for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
REPLICAS = ("recollect-1", "recollect-2")
SERVED = {"gateway.networking.k8s.io/v1", "apps/v1", "batch/v1", "networking.k8s.io/v1", "policy/v1", "v1"}


def instructions(name: str) -> list[str]:
    """Return what follows an instruction of the Dockerfile, wherever it stands."""
    return [line.strip() for line in re.findall(rf"^ *{name} +(.+)$", DOCKERFILE, re.MULTILINE)]


def found(kind: str, name: str = "") -> list[dict[str, Any]]:
    """Return the objects of a kind in the Kubernetes files, or the one with a name."""
    return [one for one in OBJECTS if one["kind"] == kind and name in ("", one["metadata"]["name"])]


def pods() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each pod of the Kubernetes files with the labels that it has."""
    for one in OBJECTS:
        if template := one.get("spec", {}).get("template"):
            yield template["spec"], template["metadata"]["labels"]


@cache
def environment() -> dict[str, str]:
    """Return what the Dockerfile sets for the process."""
    return dict(re.findall(r"(\w+)=(\S+)", instructions("ENV")[-1]))


def images() -> list[str]:
    """Return every image that some file names."""
    python = re.search(r"ARG PYTHON=(\S+)", DOCKERFILE)
    assert python is not None
    named = [f"python:{python[1]}", *(service["image"] for service in COMPOSE["services"].values())]
    named += [container["image"] for pod, _ in pods() for container in pod["containers"]]
    return [one for one in named if one != "recollect"]  # the kustomization gives that one its name and version


# The image


def test_every_image_has_one_version() -> None:
    """No image moves under a deployment: ours is of this version, Chroma's and Python's are those that tests ran on."""
    assert {one.rpartition("/")[2] for one in images()} == {
        f"recollect:{recollect.__version__}",
        f"chroma:{version('chromadb')}",
        "python:3.11.14-slim-bookworm",
        "caddy:2.11.4-alpine",
        "postgres:18.6-trixie",
    }
    kustomization = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8"))
    [ours] = kustomization["images"]
    assert ours["newTag"] == recollect.__version__
    assert metadata("recollect")["Requires-Python"] == ">=3.11"


def test_the_image_runs_as_nobody_of_weight() -> None:
    """The last stage ends as a user with a number, so that a cluster can see that it is not root."""
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    [user] = re.findall(r"^USER (\d+):(\d+)$", last, re.MULTILINE)
    assert int(user[0]) >= 10000
    assert "RUN" not in last[last.index("\nUSER ") :]


def test_the_image_has_no_torch() -> None:
    """What is installed are the wheel and the extras of a server, and the build fails where torch came along."""
    [installed] = re.findall(r"pip install (\S+)", DOCKERFILE)
    assert installed == '".[server,telemetry]"'
    assert "! /opt/recollect/bin/pip show --quiet torch" in DOCKERFILE
    required = [one for one in metadata("recollect").get_all("Requires-Dist") or () if "extra ==" not in one]
    assert not [one for one in required if re.match(r"(torch|sentence-transformers)\b", one)]


def test_the_process_of_the_image_gets_the_signals() -> None:
    """No shell stands before the process, and what it writes is the volume."""
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["recollect"]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert instructions("VOLUME") == [environment()["RECOLLECT_HOME"]] == [environment()["HOME"]]
    check = json.loads(re.findall(r"HEALTHCHECK .*? CMD (\[.+\])", DOCKERFILE)[0])
    assert "http://127.0.0.1:8765/readyz" in check[2]
    compile(check[2], "HEALTHCHECK", "exec")


def test_what_the_build_copies_is_not_ignored() -> None:
    """Every path that the build copies out of the checkout, and nothing else, is let through whole."""
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    let = {line[1:] for line in lines if line[0] == "!"}
    copied = {path for line in instructions("COPY") if "--from" not in line for path in line.split()[:-1]}
    assert copied == let
    assert all((ROOT / path).exists() for path in copied)


def test_the_image_has_the_default_model() -> None:
    """The wheel that the image installs is made of files that the build copies, the default model's among them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    added = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {f"models/{Settings().model}/{name}" for name in ("card.toml", "model.onnx", "tokenizer.json")} <= set(added)
    copied = {path for line in instructions("COPY") if "--from" not in line for path in line.split()[:-1]}
    assert {file.partition("/")[0] for file in added} <= copied


# Settings, commands and addresses


def test_every_setting_that_is_named_is_one() -> None:
    """The variables in the files are settings of ours, or the file of one."""
    known = {variable(name) for name in Settings.model_fields}
    for file in (path for path in DEPLOY.rglob("*") if path.is_file()):
        named = set(re.findall(r"\bRECOLLECT_[A-Z_]+", file.read_text(encoding="utf-8")))
        assert {one.removesuffix("_FILE") for one in named} <= known, file.name


def test_the_commands_are_ours() -> None:
    """The command line takes what the image and the files for clusters call it with."""
    called = [json.loads(instructions("CMD")[0])]
    called += [one["args"] for pod, _ in pods() for one in pod["containers"] if one["name"] == "recollect"]
    root = whole()
    for arguments in called:
        at = next(number for number, word in enumerate(arguments) if not word.startswith("-"))
        context = root.make_context("recollect", arguments[: at + 1])
        command = root.commands[arguments[at]]
        assert command.make_context(arguments[at], arguments[at + 1 :], parent=context).command is command


def test_the_commands_of_chroma_are_its_own() -> None:
    """The Chroma server that the tests run knows each option that the files give it."""
    told = subprocess.run([CHROMA, "run", "--help"], capture_output=True, text=True, check=True).stdout
    [container] = found("StatefulSet", "chroma")[0]["spec"]["template"]["spec"]["containers"]
    for command in (COMPOSE["services"]["chroma"]["command"], container["args"]):
        assert command[0] == "run"
        assert all(f"{one} <" in told for one in command if one.startswith("--"))


def test_the_replicas_share_one_store() -> None:
    """All replicas of the compose file, and those of the cluster and its job, have one database and one Chroma."""
    one, two = (COMPOSE["services"][name]["environment"] for name in REPLICAS)
    assert one == two
    assert COMPOSE["services"]["postgres"]["environment"]["POSTGRES_DB"] == "recollect"
    [told] = found("ConfigMap")
    ours = [pod["containers"][0] for pod, labels in pods() if labels["app"] == "recollect"]
    assert [container["envFrom"] for container in ours] == [[{"configMapRef": {"name": told["metadata"]["name"]}}]] * 2
    for address in (one["RECOLLECT_CHROMA_URL"], told["data"]["RECOLLECT_CHROMA_URL"]):
        assert (urlsplit(address).hostname, urlsplit(address).port) == ("chroma", 8000)
    [service] = found("Service", "chroma")
    assert service["spec"]["ports"][0]["port"] == 8000
    assert Path(told["data"]["RECOLLECT_DATABASE_URL_FILE"]).parent == Path(
        next(mount["mountPath"] for mount in ours[0]["volumeMounts"] if mount["name"] == "secrets")
    )


def test_no_secret_stands_in_a_file() -> None:
    """Passwords come from files that are in no repository; nothing is in the environment in plain text."""
    assert {one["file"] for one in COMPOSE["secrets"].values()} == {
        "./secrets/postgres_password",
        "./secrets/database_url",
    }
    assert (DEPLOY / ".gitignore").read_text(encoding="utf-8").split() == ["secrets/"]
    for service in COMPOSE["services"].values():
        secret = {name for name in service.get("environment", {}) if re.search("PASSWORD|TOKEN|DATABASE_URL", name)}
        assert all(name.endswith("_FILE") for name in secret)
    assert found("Secret") == []


def test_the_replicas_are_asked_what_they_answer(app: App, settings: Settings) -> None:
    """Each path that a probe asks or a proxy lets through is one of the server's, and it takes no larger bodies."""
    known = set(re.findall(r"/\w+(?:\.\w+)?", " ".join(openapi.document(TeamAccess(app, settings))["paths"])))
    asked = set(re.findall(r"(?:health_uri|:8765)(?: )?(/\w+)", CADDYFILE + DOCKERFILE))
    for pod, labels in pods():
        probes = [one[name] for one in pod["containers"] for name in one if name.endswith("Probe")]
        asked |= {probe["httpGet"]["path"] for probe in probes if "httpGet" in probe and labels["app"] == "recollect"}
    assert asked == {"/readyz", "/healthz"} <= known
    assert f"max_size {TeamAccess(app, settings).larger['/v1/import_batch'] >> 20}MiB" in CADDYFILE


def test_a_replica_has_the_time_that_its_end_takes() -> None:
    """Requests that run and events that wait are finished before a container is killed."""
    patience = server._FINISH + server._EVENTS
    assert all(int(COMPOSE["services"][name]["stop_grace_period"].rstrip("s")) > patience for name in REPLICAS)
    [deployment] = found("Deployment")
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > patience
    [idle] = re.findall(r"keepalive (\d+)s", CADDYFILE)
    assert int(idle) < server._KEEP_ALIVE


def test_postgres_has_a_connection_for_every_request() -> None:
    """PostgreSQL lets in as many as the replicas may want at once, during a rollout too."""
    told = COMPOSE["services"]["postgres"]["command"]
    [container] = found("StatefulSet", "postgres")[0]["spec"]["template"]["spec"]["containers"]
    assert told == container["args"]
    assert int(told[-1].partition("=")[2]) >= 3 * Settings().concurrent_requests


# The compose file


def test_only_the_proxy_is_reached_from_outside() -> None:
    """No other service has a port on the machine, and the stores are in a network without a way out."""
    services = COMPOSE["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert services["postgres"]["networks"] == services["chroma"]["networks"] == ["store"]
    assert COMPOSE["networks"]["store"] == COMPOSE["networks"]["service"] == {"internal": True}
    assert set(services["proxy"]["networks"]) == {"public", "service"}


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_service_is_looked_after(name: str) -> None:
    """Each has a health check, comes back, may gain no rights, and writes nothing but its volumes and memory."""
    service = COMPOSE["services"][name]
    assert name != "chroma" or service["ulimits"]["nofile"] > 4 * 10_000  # four files for each namespace
    assert "healthcheck" in service or name in REPLICAS  # those have that of their image
    assert service["restart"] == "unless-stopped"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    used = {one.partition(":")[0] for one in service["volumes"]}
    assert {one for one in used if not one.startswith(".")} <= COMPOSE["volumes"].keys()


def test_the_proxy_passes_on_what_the_server_takes() -> None:
    """The proxy asks each replica of the file whether it is ready, and takes bodies as large as an import's."""
    assert "recollect-1:8765 recollect-2:8765" in CADDYFILE
    assert "health_uri /readyz" in CADDYFILE
    assert "max_size 64MiB" in CADDYFILE
    assert not re.search(
        r"^\s*fail_duration", CADDYFILE, re.MULTILINE
    )  # a retry that fails would stop both replicas for as long
    assert not re.search(r"^\s*(encode|buffer)", CADDYFILE, re.MULTILINE)


# The cluster


@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: f"{one['kind']}/{one['metadata']['name']}")
def test_kubernetes_knows_every_field(one: dict[str, Any]) -> None:
    """Each object has a kind that is still served, fields that exist, and a place in our namespace."""
    assert one["apiVersion"] in SERVED
    assert list(unknown_fields(one, f"V1{one['kind']}")) == []
    assert one["metadata"].get("namespace", "recollect") == "recollect"


@pytest.mark.parametrize("pod", [pod for pod, _ in pods()], ids=[labels["app"] for _, labels in pods()])
def test_every_pod_is_restricted(pod: dict[str, Any]) -> None:
    """Each pod may run where the cluster admits restricted ones alone, and says what it needs."""
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        assert_restricted(container)
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert {volume["name"] for volume in pod["volumes"]} <= mounted


def test_two_replicas_are_kept_alive() -> None:
    """The deployment has two replicas with three probes each, of which one is always left, and a service finds both."""
    [deployment] = found("Deployment")
    template = deployment["spec"]["template"]
    [container] = template["spec"]["containers"]
    labels = template["metadata"]["labels"]
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/readyz", "readiness": "/readyz", "liveness": "/healthz"}
    assert found("PodDisruptionBudget")[0]["spec"]["selector"]["matchLabels"] == labels
    assert found("Service", "recollect")[0]["spec"]["selector"] == labels
    pod = template["spec"]["securityContext"]
    assert str(pod["runAsUser"]) == instructions("USER")[0].partition(":")[0]
    assert template["spec"]["enableServiceLinks"] is False


def test_only_recollect_reaches_the_stores() -> None:
    """Nobody is let in by default; into PostgreSQL and Chroma only pods of Recollect are, each at its own port."""
    policies = {one["metadata"]["name"]: one["spec"] for one in found("NetworkPolicy")}
    assert policies["nobody"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name, port in (("postgres", 5432), ("chroma", 8000)):
        assert policies[name]["podSelector"] == {"matchLabels": {"app": name}}
        [rule] = policies[name]["ingress"]
        assert rule["from"] == [{"podSelector": {"matchLabels": {"app": "recollect"}}}]
        assert rule["ports"] == [{"port": port, "protocol": "TCP"}]


def test_the_route_leaves_out_what_is_for_those_inside() -> None:
    """The route leads to the service by its port, and figures are not among what is reached from outside."""
    [route], [service] = found("HTTPRoute"), found("Service", "recollect")
    [rule] = route["spec"]["rules"]
    paths = {one["path"]["value"] for one in rule["matches"]}
    assert "/metrics" not in paths
    assert "/" not in paths
    assert {"/v1", "/mcp"} <= paths
    assert rule["backendRefs"] == [{"name": "recollect", "port": service["spec"]["ports"][0]["port"]}]


def test_the_gateway_and_prometheus_are_let_in() -> None:
    """The policy lets in the namespace of the gateway that the route names, and the one that collects figures."""
    [policy] = found("NetworkPolicy", "recollect")
    [rule] = policy["spec"]["ingress"]
    names = {one["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for one in rule["from"]}
    [parent] = found("HTTPRoute")[0]["spec"]["parentRefs"]
    assert names == {parent["namespace"], "monitoring"}


def test_secrets_are_read_where_they_were_made() -> None:
    """Every file that the page hands to the cluster is one that the same block has written before."""
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    blocks = [one for one in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "create secret" in one]
    assert len(blocks) == 2
    for block in blocks:
        read = re.findall(r"--from-file=\w+=(\S+)", block)
        assert read
        assert all(f"> {file}\n" in block for file in read)
