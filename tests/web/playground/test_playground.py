"""The playground in a real browser: scenes, pointer and keyboard, links, downloads, accessibility, no network."""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evenly.cli.main import main
from evenly.live.addresses import Address
from evenly.live.listening import listening_socket
from evenly.web import assets
from evenly.web.server import PageServer
from tests.web.support import Watched, assert_accessible, expect, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Page


SCENES = {
    "random": ("Pick a server at random", 1),
    "choices": ("Look at two, take the emptier", 2),
    "jsq": ("Ask everyone, and the price of it", 1),
    "tokens": ("Let the pools speak up", 1),
    "wrong": ("The wrong threshold", 1),
    "learning": ("Learn it, from the tokens alone", 2),
    "demand": ("When demand changes", 2),
    "late": ("Messages take time", 3),
    "sandbox": ("Sandbox", 4),
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The playground, served as `evenly play` serves it."""
    with PageServer(assets.Page("playground"), listening_socket(Address("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.port}/"
        server.shutdown()
        thread.join()


def _time(page: Page) -> float:
    return float(page.locator("#time").inner_text())


def _wait_until(page: Page, time: float) -> None:
    page.wait_for_function("t => Number(document.getElementById('time').textContent) >= t", arg=time)


def _csv(page: Page) -> str:
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    return Path(download.value.path()).read_text()


def _settle(page: Page) -> None:
    """Wait until the page has done all that it was asked to."""
    expect(page.locator("#lanes")).to_have_attribute("aria-busy", "false")


def _fragment(page: Page) -> dict[str, str]:
    """The state in the address."""
    return dict(part.split("=", 1) for part in page.url.partition("#")[2].split("&"))


def _numbers(page: Page) -> str:
    return page.locator("#numbers").inner_text()


@pytest.mark.long
def test_every_scene_tells_its_part_and_runs(watch: Watched, address: str) -> None:
    page = watch.page(address)
    for number, (scene, (title, lanes)) in enumerate(SCENES.items(), 1):
        page.get_by_role("link", name=re.compile(rf"^{number} ?\D")).click()
        expect(page.locator("#scene-title")).to_have_text(title)
        expect(page.locator(".lane")).to_have_count(lanes)
        begin = _time(page)
        page.wait_for_function("t => Number(document.getElementById('time').textContent) > t", arg=begin + 0.02)
        assert _fragment(page)["scene"] == scene
        label = page.locator("#scene-labels button").first
        label.click()
        expect(page.locator("#statement-title")).to_have_text(f"The paper, {label.inner_text()}")
        page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Back")).to_be_visible()
    expect(page.locator("#next")).to_be_hidden()


@pytest.mark.full
def test_what_a_scene_asks_to_touch_changes_the_run(watch: Watched, address: str) -> None:
    page = watch.page(f"{address}#scene=demand&t=1&pools=100&load=5.5&seed=3")
    expect(page.locator("#play")).to_have_text("Play")  # a link to a moment opens paused
    page.get_by_role("button", name="Double the load").click()
    expect(page.locator("#controls")).to_contain_text("Load 11")
    page.wait_for_function("() => window.location.hash.includes('load@1=11;average@4=0&')")
    expect(page.locator("#numbers-since")).to_contain_text("They start again at time 4,")
    expect(page.locator("#numbers")).to_contain_text("predicted, once settled: 11")
    page.locator("#speed").fill("1.5")
    page.get_by_role("button", name="Play").click()
    _wait_until(page, 6.0)
    page.get_by_role("button", name="Pause").click()
    thresholds = page.locator("tbody tr").last.locator(".measured").all_inner_texts()
    learned, fixed = map(float, thresholds)
    assert fixed == 5.0 and learned > 7.0
    expect(page.locator("#live")).to_contain_text("Threshold of policy 1 is now")
    expect(page.locator("#numbers-since")).to_contain_text("Averages since time 4,")
    expect(page.locator("#numbers")).not_to_contain_text("once settled")
    expect(page.locator("#numbers")).not_to_contain_text("by time")

    page.goto(f"{address}#scene=random&t=6")  # the first picture shows what the text says
    expect(page.locator(".fact")).to_have_text(re.compile(r"fullest 1\d"))
    page.goto(f"{address}#scene=choices&t=2")
    page.get_by_role("slider", name="Choices").fill("4")
    expect(page.locator(".lane h3").nth(1)).to_have_text("Best of 4 choices")
    expect(page.locator("#time")).to_have_text("2.00")
    page.goto(f"{address}#scene=jsq&t=1")
    page.get_by_role("slider", name="Pools").fill("18")
    expect(page.locator("canvas.stage")).to_have_attribute("aria-label", "Join the shortest queue: 160 pools")


def test_what_is_written_above_a_picture_is_what_it_shows(watch: Watched, address: str) -> None:
    """A task that still flies is in no column yet. The clock of the page stands still meanwhile."""
    page = watch.page(f"{address}#scene=sandbox&t=0&pools=10&load=5&lanes=jsq,random")
    expect(page.locator(".fact")).to_have_text(["fullest 0", "fullest 0"])
    expect(page.locator(".lane-number")).to_have_text(["1", "2"])
    page.clock.install()
    page.clock.pause_at("2100-01-01")
    page.get_by_role("button", name="Step", exact=True).click()
    _settle(page)
    page.clock.run_for(100)
    expect(page.locator(".fact")).to_have_text(["fullest 0", "fullest 0"])
    page.clock.run_for(1000)
    expect(page.locator(".fact")).to_have_text(["fullest 1", "fullest 1"])


def _line_of_the_threshold(page: Page, box: FloatRect) -> float:
    """Find the line by its effect on the pointer. Return its height on the page."""
    for y in range(int(box["y"] + box["height"]) - 20, int(box["y"]) + 60, -3):
        page.mouse.move(box["x"] + 200, y)
        if "grab" in (page.locator("canvas.stage").get_attribute("class") or ""):
            return y - 5
    raise AssertionError("no line")


@pytest.mark.full
def test_the_threshold_can_be_dragged_and_a_pool_killed(watch: Watched, address: str) -> None:
    page = watch.page(f"{address}#scene=wrong&t=3&pools=10&load=5.5&lanes=threshold:t4")
    stage = page.locator("canvas.stage")
    box = stage.bounding_box()
    assert box is not None
    slider = page.get_by_label("Your threshold")
    expect(slider).to_have_value("4")
    line = _line_of_the_threshold(page, box)
    page.mouse.move(box["x"] + 200, line)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 90, steps=4)
    page.mouse.up()
    expect(slider).not_to_have_value("4")
    moved = int(slider.input_value())
    assert moved > 6
    page.wait_for_function("end => window.location.hash.includes(end)", arg=f"threshold@3={moved}/0;average@6=0&")
    page.mouse.click(box["x"] + 60, box["y"] + box["height"] - 30)  # by accident: a scene asks for no kill
    page.keyboard.press("End")
    expect(page.locator("#live")).to_contain_text("Pool 10: ")
    page.keyboard.press("Enter")
    _settle(page)
    assert "kill" not in page.url

    page.goto(f"{address}#scene=sandbox&t=3&pools=10&lanes=jsq")
    expect(page.locator("#scene-title")).to_have_text("Sandbox")
    expect(stage).to_have_attribute("title", re.compile("^Click a column to kill"))
    box = stage.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 60, box["y"] + box["height"] - 30)
    expect(page.locator("#live")).to_contain_text("is killed")
    page.wait_for_function("() => /kill@3=[0-9];/.test(window.location.hash)")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_function("() => /kill@3=9;/.test(window.location.hash)")


@pytest.mark.full
def test_a_link_reproduces_a_run_to_the_last_event(watch: Watched, address: str) -> None:
    page = watch.page(
        f"{address}#scene=sandbox&seed=11&pools=30&load=4.5&lanes=threshold:t0:a0.9,jsq,jiq&speed=30&t=2"
    )
    page.get_by_role("button", name="Kill the fullest pool").click()
    page.get_by_role("button", name="Double the load").click()
    page.get_by_role("button", name="Play").click()
    _wait_until(page, 9.0)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Average from now").click()
    for _ in range(5):
        page.get_by_role("button", name="Step", exact=True).click()
    _settle(page)
    # Back and forth: a run that went back in time ends in the same state.
    late = page.url
    numbers, time = _numbers(page), page.locator("#time").inner_text()
    points = _csv(page)
    page.locator("#scrubber").fill("1.5")
    expect(page.locator("#time")).to_have_text("1.50")
    assert _numbers(page) != numbers
    other = watch.page(late)
    expect(other.locator("#time")).to_have_text(time)
    _settle(other)
    assert _numbers(other) == numbers
    assert _csv(other) == points
    other.get_by_role("button", name="Copy link").click()
    assert other.locator("#share-text").input_value() == other.url


@pytest.mark.full
def test_the_command_gives_the_figures_of_the_table(
    watch: Watched, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = watch.page(
        f"{address}#scene=sandbox&seed=5&pools=40&load=3.5&lanes=threshold:t0:a0.85,power-of-d:d3&t=7"
    )
    expect(page.locator("#time")).to_have_text("7.00")
    page.get_by_role("button", name="Copy as command").click()
    lines = page.locator("#share-text").input_value().splitlines()
    assert len(lines) == 2
    expect(page.locator("#share-note")).to_contain_text("same seed")
    page.keyboard.press("Escape")
    shown = [row.locator(".measured").all_inner_texts() for row in page.locator("tbody tr").all()]
    for lane, line in enumerate(lines):
        words = shlex.split(line)
        assert words.pop(0) == "evenly" and main([*words, "--json"]) == 0
        figures = json.loads(capsys.readouterr().out)
        expected = [
            figures["mean_tasks"],
            figures["max_tasks"]["mean"],
            figures["spread"]["mean"],
            figures["messages"]["per_task"],
        ]
        assert [row[lane] for row in shown[:4]] == [f"{value:.3f}" for value in expected], line


@pytest.mark.full
def test_everything_works_by_keyboard_alone(watch: Watched, address: str) -> None:
    page = watch.page(f"{address}#scene=wrong&t=2&pools=10&lanes=threshold:t5")
    expect(page.locator("#threshold-0")).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "scene-title"
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        if reached[-1] == "csv":
            break
    wanted = {
        "threshold-0",
        "stage",
        "play",
        "step",
        "reset",
        "scrubber",
        "speed",
        "metric",
        "link",
        "command",
        "png",
    }
    assert wanted <= set(reached)
    page.locator("canvas.stage").focus()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Your threshold")).to_have_value("6")
    page.keyboard.press("End")
    expect(page.locator("#live")).to_contain_text(re.compile(r"Pool 10: \d+ tasks, "))
    page.keyboard.press(" ")
    expect(page.locator("#play")).to_have_text("Pause")
    page.keyboard.press(" ")
    stopped = _time(page)
    page.keyboard.press(".")
    page.wait_for_function("t => Number(document.getElementById('time').textContent) >= t", arg=stopped)
    expect(page.locator("#play")).to_have_text("Play")


@pytest.mark.full
def test_pictures_and_numbers_can_be_downloaded(watch: Watched, address: str, tmp_path: Path) -> None:
    page = watch.page(f"{address}#scene=choices&t=2&seed=4")
    found: dict[str, bytes] = {}
    for name in ("PNG", "SVG", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        found[path.name] = path.read_bytes()
    assert list(found) == [f"evenly-choices-seed4-t2.{ending}" for ending in ("png", "svg", "csv")]
    png, svg, csv = found.values()
    assert png.startswith(b"\x89PNG") and len(png) > 20_000
    assert svg.startswith(b"<svg ") and svg.count(b"<path") > 5 and b"Best of 2 choices" in svg
    lines = csv.decode().splitlines()
    assert lines[0].startswith("time,policy,fullest,spread,threshold")
    assert len(lines) == 1 + 2 * 33  # every sixteenth of a mean task time, both ends included
    assert lines[-1].startswith("2,power-of-d:d2,")


BAD_LINKS = [
    "scene=nowhere",
    "scene=random&pools=1000000",
    "scene=random&lanes=jsq,jsq,jsq,jsq,jsq",
    "scene=random&lanes=threshold:a2",
    "scene=random&lanes=__proto__",
    "scene=random&do=kill@1=99999",
    "scene=random&t=NaN",
    "scene=random&do=" + ";".join(["load@1=2"] * 500),
]


@pytest.mark.full
def test_a_bad_link_opens_the_first_scene(watch: Watched, address: str) -> None:
    page = watch.page(address)
    for fragment in BAD_LINKS:
        page.goto(f"{address}#scene=jsq&t=1")
        expect(page.locator("#bad-link")).to_be_hidden()
        page.goto(f"{address}#{fragment}")
        expect(page.locator("#bad-link")).to_be_visible()
        expect(page.locator("#scene-title")).to_have_text("Pick a server at random")


@pytest.mark.full
def test_a_link_that_is_full_says_so_and_stays_valid(watch: Watched, address: str) -> None:
    """400 actions: 398 in the past, and the start of averages, which is planned."""
    past = ";".join(f"load@1={2 + at % 2}" for at in range(398))
    page = watch.page(f"{address}#scene=sandbox&pools=5&lanes=jsq&t=2&do={past};average@8=0")
    notice = page.locator("#full-link")
    page.get_by_role("button", name="Double the load").click()
    page.wait_for_function("() => window.location.hash.includes('load@2=')")
    expect(notice).to_be_hidden()
    full = page.url
    page.get_by_role("button", name="Kill the fullest pool").click()
    expect(notice).to_be_visible()
    assert page.url == full
    page.goto(full.replace("#scene=sandbox", "#scene=sandbox&"))
    expect(page.locator("#bad-link")).to_be_hidden()


@pytest.mark.full
def test_the_page_is_accessible(browser: Browser, address: str) -> None:
    """At both widths, in both color schemes; with reduced motion, nothing moves by itself."""
    with watched(browser, bypass_csp=True, still=True) as watch:
        page = watch.page(f"{address}#scene=tokens")
        expect(page.locator("#numbers")).to_contain_text("predicted")
        expect(page.locator("#play")).to_have_text("Play")
        assert_accessible(page)
        page.goto(f"{address}#scene=sandbox")
        expect(page.locator(".lane")).to_have_count(4)
        page.get_by_role("button", name="Copy link").click()
        assert_accessible(page)


@pytest.mark.full
def test_the_exported_page_needs_neither_server_nor_network(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    assert main(["play", "--export", str(folder)]) == 0
    with watched(browser) as watch:
        watch.context.set_offline(True)
        page = watch.page(f"{folder.as_uri()}/index.html#scene=learning&t=3&seed=2")
        expect(page.locator("#time")).to_have_text("3.00")
        page.get_by_role("button", name="Play").click()
        _wait_until(page, 3.1)
        page.get_by_role("link", name="4 Tokens").click()
        expect(page.locator("#scene-title")).to_have_text("Let the pools speak up")
