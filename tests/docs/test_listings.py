"""What registries and agents read about Recollect: made by `scripts/listings.py`, and by the published references."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jsonschema

import recollect
from places import ROOT

Module = Callable[[str], ModuleType]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXT = {"type": "string", "minLength": 1}
SERVER = {  # static.modelcontextprotocol.io/schemas/2025-12-11, as far as a package of PyPI needs it
    "type": "object",
    "additionalProperties": False,
    "required": ["$schema", "name", "description", "version", "packages"],
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": TEXT | {"maxLength": 100},
        "description": TEXT | {"maxLength": 100},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+", "maxLength": 255},
        "repository": {
            "type": "object",
            "required": ["url", "source"],
            "properties": {"url": TEXT, "source": {"const": "github"}},
        },
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["registryType", "identifier", "version", "transport"],
                "properties": {
                    "registryType": {"const": "pypi"},
                    "identifier": TEXT,
                    "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
                    "runtimeHint": {"const": "uvx"},
                    "transport": {"const": {"type": "stdio"}},
                    "packageArguments": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["type", "value"],
                            "properties": {"type": {"const": "positional"}, "value": TEXT},
                        },
                    },
                    "environmentVariables": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["name", "description"],
                            "properties": {
                                "name": TEXT,
                                "description": TEXT,
                                "format": {"enum": ["string", "number", "boolean", "filepath"]},
                                "isSecret": {"type": "boolean"},
                            },
                        },
                    },
                },
            },
        },
    },
}
MARKETPLACE = {  # code.claude.com/docs/en/plugins/create-marketplace; Codex reads the same file
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "owner", "plugins"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "description": TEXT,
        "owner": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
        "plugins": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "source"],
                "properties": {
                    "name": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
                    "source": {"type": "string", "pattern": r"^\./(?!.*\.\.)"},
                    "description": TEXT,
                    "category": TEXT,
                },
            },
        },
    },
}


def read(name: str) -> Any:
    """Read one of them as JSON."""
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def test_every_file_is_what_the_script_writes(module: Module) -> None:
    """Each of them equals what the script makes of package and agents now."""
    made = {name: write() for name, write in module("listings").FILES.items()}
    there = {name: (ROOT / name).read_text(encoding="utf-8") for name in made}
    assert there == made, "run scripts/listings.py"


def test_the_registrys_file_is_by_its_schema(module: Module) -> None:
    """It names the package as it is published, in this version, and how a client starts it."""
    found = read("server.json")
    jsonschema.validate(found, SERVER)
    [package] = found["packages"]
    assert (package["identifier"], package["version"]) == (PROJECT["name"], recollect.__version__)
    assert found["version"] == recollect.__version__
    assert found["description"] == PROJECT["description"]
    secret = [one["name"] for one in package["environmentVariables"] if one.get("isSecret")]
    assert secret == ["RECOLLECT_TOKEN"]


def test_readme_agrees_to_be_registered() -> None:
    """The registry finds its name for the server in the package's description, which is README."""
    assert PROJECT["readme"] == "README.md"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count(f"<!-- mcp-name: {read('server.json')['name']} -->") == readme.count("mcp-name:") == 1


def test_the_marketplace_leads_to_the_plugin() -> None:
    """It is by the reference, and what it names is a plugin for Claude Code and for Codex of the same version."""
    found = read(".claude-plugin/marketplace.json")
    jsonschema.validate(found, MARKETPLACE)
    [plugin] = found["plugins"]
    for client in (".claude-plugin", ".codex-plugin"):
        manifest = json.loads((ROOT / plugin["source"] / client / "plugin.json").read_text(encoding="utf-8"))
        assert (manifest["name"], manifest["version"]) == (plugin["name"], recollect.__version__)
