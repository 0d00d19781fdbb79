"""The chart: Helm takes it, bad values are refused by name, and the Compose file and manifests come from it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import recollect
from kubernetes_objects import assert_restricted, unknown_fields
from places import ROOT
from postgres import Postgres
from recollect import Settings
from recollect.doors.cli.main import whole
from recollect.setting_texts import variable
from run_operations import add, recalled
from stores import open_app

CHART = ROOT / "docs" / "deploy" / "helm"
EVERYTHING = (
    "--set=postgres.enabled=true,route.enabled=true,ingress.enabled=true,ingress.tlsSecret=memory-tls",
    "--set=serviceMonitor.enabled=true,serviceMonitor.tokenKey=metrics_token,workers=4",
    "--set=backup.enabled=true,backup.volume.persistentVolumeClaim.claimName=backups",
    "--set=ingress.className=nginx,imagePullSecrets[0].name=registry,nodeSelector.disk=fast",
    "--set-string=settings.RECOLLECT_REQUESTS_PER_MINUTE=120",
    '--set-json=tolerations=[{"key":"memory","operator":"Exists"}]',
    '--set-json=networkPolicy.egress=[{"ports":[{"port":443}]}]',
)
ELSEWHERE = ("--set=chroma.enabled=false,chroma.url=http://chroma.example:8000,networkPolicy.enabled=false",)
REFUSED = {
    "replica=3": "replica",
    "replicas=0": "replicas",
    "workers=many": "workers",
    "port=70000": "port",
    "terminationGracePeriodSeconds=30": "terminationGracePeriodSeconds",
    "settings.SOME_NAME=x": "SOME_NAME",
    "settings.RECOLLECT_DATABASE_URL=postgresql://x/y": "RECOLLECT_DATABASE_URL",
    "secret.settings={metrics_token}": "settings",
    "chroma.enabled=false": "chroma.url: name the Chroma server",
    "chroma.image=chroma": "image",
    "serviceMonitor.enabled=true": "tokenKey",
    "backup.enabled=true": "volume",
}


@pytest.fixture
def deployment(module: Callable[[str], ModuleType]) -> ModuleType:
    """Return the script that renders the chart."""
    found = module("deployment")
    if found.helm() is None:
        pytest.skip("Helm is not installed")
    return found


@pytest.fixture(params=[(), EVERYTHING, ELSEWHERE], ids=["defaults", "everything", "elsewhere"])
def objects(deployment: ModuleType, request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return what the chart renders by default, with all that can be turned on, or with servers elsewhere."""
    return [one for one in yaml.safe_load_all(deployment.render(*request.param, release="mem")) if one]


def pods(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each pod that the objects make."""
    for one in objects:
        spec = one.get("spec", {})
        template = spec.get("template") or spec.get("jobTemplate", {}).get("spec", {}).get("template")
        if template:
            yield template["spec"]


def test_the_files_come_from_the_chart(deployment: ModuleType) -> None:
    """The Compose file and the manifests are as the chart makes them: after a change run scripts/deployment.py."""
    written = deployment.compose() | deployment.manifests()
    assert {file.name for file in written} >= {"compose.yaml", "recollect.yaml", "prepare.yaml"}
    assert [file.name for file, text in written.items() if file.read_text(encoding="utf-8") != text] == []


def test_a_file_that_differs_is_noticed(
    deployment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed value changes both the Compose file and the manifests, and `--check` ends with 1."""
    changed = tmp_path / "helm"
    subprocess.run(["cp", "-r", str(CHART), str(changed)], check=True)
    values = (changed / "values.yaml").read_text(encoding="utf-8")
    (changed / "values.yaml").write_text(values.replace("chroma:1.5.9", "chroma:1.6.0"), encoding="utf-8")
    monkeypatch.setattr(deployment, "CHART", changed)
    stale = [
        file.name
        for file, text in (deployment.compose() | deployment.manifests()).items()
        if file.read_text(encoding="utf-8") != text
    ]
    assert sorted(stale) == ["chroma.yaml", "compose.yaml"]
    assert deployment.main(["--check"]) == 1


def test_helm_finds_nothing_to_mend(deployment: ModuleType) -> None:
    """`helm lint --strict` passes, and chart and application have our version."""
    done = subprocess.run([deployment.helm(), "lint", "--strict", str(CHART)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == recollect.__version__


@pytest.mark.parametrize("value", REFUSED)
def test_a_bad_value_is_refused_by_its_name(deployment: ModuleType, value: str) -> None:
    """The schema names the value that is unknown, out of range or missing."""
    with pytest.raises(SystemExit, match=re.escape(REFUSED[value])):
        deployment.render(f"--set={value}")


def test_every_value_is_in_the_schema(deployment: ModuleType) -> None:
    """No value of the chart is unknown to the schema, and none of the schema is absent from the chart."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))["properties"]
    assert values.keys() | {"global"} == schema.keys()
    nested = {name for name, one in schema.items() if one.get("additionalProperties") is False}
    assert nested
    assert all(values[name].keys() == schema[name]["properties"].keys() for name in nested)


def test_kubernetes_knows_what_the_chart_makes(objects: list[dict[str, Any]]) -> None:
    """Every field is one of Kubernetes, every name begins with the release's, and no two objects have one name."""
    for one in objects:
        if one["kind"] not in ("HTTPRoute", "ServiceMonitor"):
            assert list(unknown_fields(one, f"V1{one['kind']}")) == []
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(names) == len(set(names))
    assert all(name.startswith("mem") for _, name in names)
    assert {one["metadata"]["namespace"] for one in objects} == {"recollect"}


def test_every_pod_of_the_chart_is_restricted(objects: list[dict[str, Any]]) -> None:
    """Each pod runs as a numbered user without rights, on a read-only root, and only stores have volumes that last."""
    found = list(pods(objects))
    assert found
    for pod in found:
        assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert_restricted(container)
        if pod["containers"][0]["name"] == "recollect":
            assert all({"emptyDir", "secret"} & volume.keys() for volume in pod["volumes"])


def test_the_chart_calls_what_we_have(objects: list[dict[str, Any]]) -> None:
    """The arguments of Recollect's containers are ours, and so is each setting of the config map."""
    root = whole()
    ours = [pod["containers"][0] for pod in pods(objects) if pod["containers"][0]["name"] == "recollect"]
    for container in ours:
        at = next(number for number, word in enumerate(container["args"]) if not word.startswith("-"))
        command = root.commands[container["args"][at]]
        command.make_context(container["args"][at], container["args"][at + 1 :])
    known = {variable(name) for name in Settings.model_fields}
    [settings] = [one["data"] for one in objects if one["kind"] == "ConfigMap"]
    assert {name.removesuffix("_FILE") for name in settings} <= known
    assert settings["RECOLLECT_CHROMA_URL"] in ("http://mem-chroma:8000", "http://chroma.example:8000")


def test_metrics_stay_inside(objects: list[dict[str, Any]]) -> None:
    """Ingress and route lead to the page, the API and the description of sign-in, and not to the metrics."""
    for one in objects:
        if one["kind"] == "Ingress":
            paths = {path["path"] for path in one["spec"]["rules"][0]["http"]["paths"]}
        elif one["kind"] == "HTTPRoute":
            paths = {match["path"]["value"] for match in one["spec"]["rules"][0]["matches"]}
        else:
            continue
        assert {"/v1", "/mcp", "/page", "/.well-known"} <= paths
        assert not {"/", "/metrics"} & paths


def test_the_backup_of_the_chart_can_be_restored(
    deployment: ModuleType, deployed: Settings, postgres: Postgres, tmp_path: Path
) -> None:
    """The script of the cron job dumps a real database, removes old dumps alone, and the dump comes back."""
    with open_app(deployed) as app:
        add(app, "The quokka of the harbour deploys the billing service on Fridays.")
    job = next(one for one in yaml.safe_load_all(deployment.render(*EVERYTHING)) if one and one["kind"] == "CronJob")
    [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    (tmp_path / "database_url").write_text(deployed.database_url, encoding="utf-8")
    (tmp_path / "recollect-old.dump").write_text("old", encoding="utf-8")
    (tmp_path / "other.txt").write_text("other", encoding="utf-8")
    for name in ("recollect-old.dump", "other.txt"):
        os.utime(tmp_path / name, (0, 0))
    script = container["args"][0].replace("/run/secrets/recollect", str(tmp_path)).replace("/backups", str(tmp_path))
    subprocess.run([*container["command"], script], check=True)
    [dump] = tmp_path.glob("*.dump")
    assert dump.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "other.txt").exists()
    url = postgres.create()
    subprocess.run(["pg_restore", "--exit-on-error", "--no-owner", f"--dbname={url}", str(dump)], check=True)
    with open_app(deployed.model_copy(update={"database_url": url, "chroma_url": ""})) as app:
        assert recalled(app, "quokka")
    postgres.drop(url)
    (tmp_path / "database_url").write_text("postgresql://postgres@127.0.0.1:1/none", encoding="utf-8")
    failed = subprocess.run([*container["command"], script], capture_output=True)
    assert failed.returncode != 0
    assert list(tmp_path.glob("*.dump")) == [dump]
