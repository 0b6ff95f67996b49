"""What installs evenly: systemd units, the Dockerfile, the Compose file, the examples for Kubernetes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from evenly.cli.main import app
from evenly.live.envoy.process import find_envoy
from tests.deploy.documented import DEPLOY, ROOT
from tests.deploy.units import FILES, PROGRAM, service, words
from tests.live.processes import Process, eventually, free_port
from tests.needs import needs

pytestmark = pytest.mark.full


COMPOSE = DEPLOY / "compose.yaml"
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
EXPOSURE = 2.0  # of 10, as `systemd-analyze security` rates a unit


def check_command_line(line: list[str]) -> None:
    """Fail unless the command and all its options exist."""
    found: Any = typer.main.get_command(app)  # Typer has a Click of its own, without types
    command = found.commands[line[0]]
    known = {name for option in command.params for name in option.opts}
    assert {word for word in line[1:] if word.startswith("-")} <= known
    assert all(option.startswith("--") for option in line[1::2]), "options and values take turns"


def test_a_unit_is_valid_hardened_and_starts_a_command_that_exists(tmp_path: Path) -> None:
    for file in FILES:
        check_command_line(words(file))
        program = str(Path(sys.executable).with_name("evenly"))
        placed = tmp_path / file.name
        placed.write_text(file.read_text(encoding="utf-8").replace(PROGRAM, program), encoding="utf-8")
        analyze = needs("systemd-analyze")
        done = subprocess.run([analyze, "verify", placed], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
        rate = [analyze, "security", "--offline=true", f"--threshold={EXPOSURE * 10:.0f}", str(file)]
        rated = subprocess.run(rate, capture_output=True, text=True, check=False)
        assert rated.returncode == 0, rated.stdout


def test_a_unit_waits_until_it_is_ready_and_passes_every_secret() -> None:
    for file in FILES:
        found = service(file)
        assert found["Type"] == "notify"
        assert found["Restart"] == "on-failure"
        secrets = set(re.findall(r"%d/([\w-]+)", found["ExecStart"]))
        loaded = set(
            re.findall(r"^LoadCredential=([\w-]+):/etc/evenly/", file.read_text(encoding="utf-8"), re.MULTILINE)
        )
        assert secrets == loaded != set()


def test_the_gateway_may_drain_before_it_is_killed() -> None:
    from evenly.live.settings import Settings

    gateway = service(DEPLOY / "systemd" / "evenly-gateway.service")
    drain = Settings.model_fields["drain_timeout"].default
    assert gateway["KillMode"] == "mixed"
    assert float(gateway["TimeoutStopSec"]) >= drain + 15
    assert float(compose()["services"]["gateway"]["stop_grace_period"].removesuffix("s")) >= drain + 15


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return found


def test_compose_accepts_its_file_and_all_that_it_mounts_exists(tmp_path: Path) -> None:
    command = [needs("docker-compose"), "-f", str(COMPOSE), "config"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    services = compose()["services"]
    check_command_line(services["gateway"]["command"])
    for each in services.values():
        for mount in each.get("volumes", []):
            source = mount.split(":")[0]
            if source not in {"./admin.token", *compose()["volumes"]}:
                assert (COMPOSE.parent / source).exists(), source
    settings = tomllib.loads((DEPLOY / "docker" / "gateway.toml").read_text(encoding="utf-8"))
    assert {pool.split(":")[0] for pool in settings["pool"]} <= set(services)
    assert settings["admin_token_file"].rpartition("/")[2] in compose()["secrets"]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (target,) = scraped["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target.split(":")[0] in services
    assert target.split(":")[1] == settings["admin"].split(":")[1]


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each with its words."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_image_runs_as_another_user_with_pinned_requirements() -> None:
    kinds = dict(instructions())  # the last of each kind
    assert kinds["USER"] == "evenly"
    check_command_line(json.loads(kinds["CMD"]))
    assert json.loads(kinds["ENTRYPOINT"]) == ["evenly"]
    installs = [text for kind, text in instructions() if kind == "RUN" and re.search(r"pip (install|sync)", text)]
    assert len(installs) == 3
    assert all("--require-hashes" in text or "--no-deps" in text for text in installs)
    assert [text for kind, text in instructions() if kind == "FROM"] == [
        "python:3.11-slim AS build",
        "python:3.11-slim",
    ]


def included(path: Path) -> bool:
    """Return whether .dockerignore, which excludes all but what it lists, lets the file through."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [line[1:] for line in lines if line.startswith("!")]
    relative = path.relative_to(ROOT)
    return any(relative.match(each) or relative.is_relative_to(each) for each in allowed)


def test_the_steps_of_the_dockerfile_make_an_evenly_that_serves(tmp_path: Path) -> None:
    """Run the build stage in a folder. The tools, which its first RUN installs, are those of this environment.

    Wheels come from uv's cache and are not compiled to bytecode, which takes a minute.
    """
    source, prefix = tmp_path / "src", tmp_path / "opt"
    begin, end = (number for number, (kind, _) in enumerate(instructions()) if kind == "FROM")
    for kind, text in instructions()[begin:end]:
        if kind == "COPY":
            *files, target = text.split()
            for name in files:
                assert included(ROOT / name), name
                place = source / target / (Path(name).name if target.endswith("/") else "")
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, place)
        elif kind == "RUN" and "-m venv /build" not in text:
            step = re.sub(r" --no-cache| --compile-bytecode", "", text).replace("/opt/evenly", str(prefix))
            step = step.replace("/build/bin", str(Path(sys.executable).parent)).replace(
                "python -m venv", "python3 -m venv"
            )
            step = re.sub(r"^python3", sys.executable, step)
            done = subprocess.run(["sh", "-c", step], cwd=source, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{step}\n{done.stderr}"

    evenly, python = prefix / "bin" / "evenly", prefix / "bin" / "python"
    found = "from evenly.live.envoy.process import find_envoy; print(find_envoy())"
    envoy = subprocess.run([python, "-I", "-c", found], check=True, capture_output=True, text=True).stdout
    assert Path(envoy.strip()).is_relative_to(prefix)
    admin = free_port()
    options = (
        "--listen",
        "127.0.0.1:0",
        "--admin",
        f"127.0.0.1:{admin}",
        "--pool",
        "127.0.0.1:9",
        "--alpha",
        "0.5",
    )
    with Process(str(evenly), "picker", *options):
        _, check = dict(instructions())["HEALTHCHECK"].split("CMD ")
        probe = [word.replace("8081", str(admin)) for word in json.loads(check)]
        eventually(
            lambda: subprocess.run([python, *probe[1:]], capture_output=True, check=False).returncode,
            lambda code: code == 0,
        )


def documents(file: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]


def test_envoy_accepts_what_the_examples_add_to_its_config(tmp_path: Path) -> None:
    (istio, _), (policy, patches, _) = (
        documents(DEPLOY / name / "evenly.yaml") for name in ("istio", "envoy-gateway")
    )
    values = [each["patch"]["value"] for each in istio["spec"]["configPatches"]]
    picker, pools, extension, route = values
    trailers, balancing = (each["operation"] for each in patches["spec"]["jsonPatches"])
    assert policy["spec"]["extProc"][0]["failOpen"] is True
    ours = extension["typed_config"]["extension_config"]["typed_config"]["processing_mode"]
    assert ours[trailers["jsonPath"].rpartition(".")[2]] == trailers["value"]
    second = {**pools, "name": "second", "load_balancing_policy": balancing["value"]}
    router = {
        "name": "router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    }
    network = "type.googleapis.com/envoy.extensions.filters.network"
    manager = {
        "@type": f"{network}.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "test",
        "http_filters": [extension, router],
        "route_config": {
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, **route}]}]
        },
    }
    listener = {
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    config = {
        "node": {"id": "test", "cluster": "test"},
        "static_resources": {"listeners": [listener], "clusters": [picker, pools, second]},
    }
    file = tmp_path / "envoy.json"
    file.write_text(json.dumps(config))
    done = subprocess.run(
        shlex.split(f"{find_envoy()} --mode validate -c {file}"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
