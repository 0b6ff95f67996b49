"""Static files: found, served with the right headers, pinned, and small."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from evenly.web.assets import CONTENT_TYPES, Page
from tests.web.playground.node import NODE
from tests.web.support import ROOT

WEB = ROOT / "src" / "evenly" / "web"
PAGES = tuple(sorted(path.parent.name for path in WEB.glob("*/index.html")))
MODULES = sorted(path for path in WEB.rglob("*.js") if "vendor" not in path.parts)
MAX_LINES = 400


@pytest.mark.parametrize("name", PAGES)
def test_a_page_refers_only_to_files_that_it_has(name: str) -> None:
    page = Page(name)
    for path, body in page.files.items():
        text = body.decode() if path.endswith((".html", ".js", ".css")) and "vendor" not in path else ""
        for found in re.findall(
            r'src="([^"]+)"|<link [^>]*href="([^"]+)"', text if path.endswith(".html") else ""
        ):
            assert "".join(found) in page.files, (path, found)
        for found in re.findall(r'(?:from|import)\s*\(?"([^"]+)"', text if path.endswith(".js") else ""):
            target = (Path("/") / Path(path).parent / found).resolve().relative_to("/")
            assert str(target) in page.files, (path, found)


@pytest.mark.parametrize("name", PAGES)
def test_only_the_page_itself_has_to_be_asked_for_again(name: str) -> None:
    page = Page(name)
    index = page.get("")
    assert index is not None
    assert index.headers["Cache-Control"] == "no-cache"
    assert index.is_known_to(f'"other", W/{index.etag}')
    assert not index.is_known_to('"other"')
    references = re.findall(r'"(web/[^"]+)"', index.body.decode())
    assert references
    for reference in references:
        asset = page.get(reference)
        assert asset is not None, reference
        assert page.digest in reference
        assert "immutable" in asset.headers["Cache-Control"]
    assert page.get("web/common/base.css") is None  # without the digest, a cache could mix releases
    assert page.get("web/../assets.py") is None
    assert page.get("index.html") is None


@pytest.mark.parametrize("name", PAGES)
def test_every_file_is_served_under_a_strict_policy(name: str) -> None:
    page = Page(name)
    for path in ["", *(path.replace("web/", f"web/{page.digest}/", 1) for path in page.files if "web/" in path)]:
        asset = page.get(path)
        assert asset is not None
        assert asset.headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "unsafe" not in asset.headers["Content-Security-Policy"]
        assert asset.headers["X-Content-Type-Options"] == "nosniff"
        assert asset.headers["Content-Type"] in CONTENT_TYPES.values()


def test_the_digest_follows_every_byte() -> None:
    digest = Page("dashboard").digest
    assert Page("dashboard").digest == digest
    changed = Page("dashboard")
    changed.files["web/common/base.css"] += b" "
    assert changed.digest != digest


def test_modules_are_small_and_have_no_way_around_the_type_check() -> None:
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MAX_LINES
        assert not re.search(
            r"@ts-(ignore|nocheck)|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text
        )


def test_vendored_files_are_those_of_the_pinned_packages() -> None:
    vendor = WEB / "vendor"
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    known = {"vendor.toml"}
    for package, entry in tomllib.loads((vendor / "vendor.toml").read_text(encoding="utf-8")).items():
        assert lock[f"node_modules/{package}"]["version"] == entry["version"]
        assert lock[f"node_modules/{package}"]["license"] == entry["licence"]
        assert entry["licence_file"] in entry["files"]
        for name, file in entry["files"].items():
            body = (vendor / name).read_bytes()
            assert hashlib.sha256(body).hexdigest() == file["sha256"], name
            assert body == (ROOT / "node_modules" / package / file["from"]).read_bytes(), name
            known.add(name)
    assert {path.name for path in vendor.iterdir()} == known


def test_the_pins_of_javascript_name_no_host_and_carry_hashes() -> None:
    lock = (ROOT / "package-lock.json").read_text(encoding="utf-8")
    assert "://" not in lock
    packages = [entry for path, entry in json.loads(lock)["packages"].items() if path]
    assert packages
    assert all(entry["integrity"].startswith("sha512-") for entry in packages)
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert all(re.fullmatch(r"[0-9.]+", version) for version in wanted.values())


@pytest.mark.full
def test_a_wrong_type_in_our_javascript_is_found(tmp_path: Path) -> None:
    config = json.loads(re.sub(r"^\s*//.*$", "", (ROOT / "tsconfig.json").read_text(), flags=re.MULTILINE))
    config["compilerOptions"]["typeRoots"] = [str(ROOT / "node_modules")]
    (tmp_path / "tsconfig.json").write_text(json.dumps({**config, "include": ["*.js"], "exclude": []}))
    module = tmp_path / "module.js"
    module.write_text("export const chart = new uPlot({ width: 1, height: 1, series: [] });\n")
    tsc = [str(NODE), str(ROOT / "node_modules/typescript/bin/tsc"), "--project", str(tmp_path)]
    assert subprocess.run(tsc, check=False).returncode == 0
    module.write_text('export const chart = new uPlot({ width: "1", height: 1, series: [] });\n')
    done = subprocess.run(tsc, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "is not assignable to type 'number'" in done.stdout
