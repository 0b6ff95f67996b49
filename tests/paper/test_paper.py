"""`evenly paper` from end to end: every figure, every claim, the report."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evenly.cli.main import main
from evenly.paper.claims import CLAIMS
from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Outcome, Verdict
from evenly.paper.experiments.lab import Lab

Capture = pytest.CaptureFixture[str]


class Page(HTMLParser):
    """The resources that a browser would load, and the targets of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "link", "iframe", "object"):
            self.loaded.append(tag)
        if values.get("src"):
            self.loaded.append(str(values["src"]))
        if tag == "a":
            self.links.append(str(values["href"]))
        if values.get("id"):
            self.anchors.append(str(values["id"]))


def run(*arguments: str) -> dict[str, Any]:
    """Run the command in its own process, which starts others."""
    command = [sys.executable, "-m", "evenly", "paper", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert isinstance(facts, dict)
    return facts


@pytest.mark.long
def test_the_whole_paper_is_reproduced(tmp_path: Path) -> None:
    facts = run("--quick", "--out", str(tmp_path / "first"))
    assert facts["surprises"] == []
    assert len(facts["claims"]) == len(CLAIMS) >= 25
    verdicts = {claim["verdict"] for claim in facts["claims"]}
    assert verdicts == {verdict.value for verdict in Verdict}
    for figure in facts["figures"]:
        files = [Path(name) for name in figure["files"]]
        assert [file.suffix for file in files] == [".png", ".svg"]
        assert all(file.stat().st_size > 5_000 for file in files), figure["name"]
    _check_report(tmp_path / "first", facts)


@pytest.mark.full
def test_the_same_seed_gives_the_same_numbers_and_pictures(tmp_path: Path) -> None:
    first, second = (run("fig6", "--quick", "--out", str(tmp_path / name)) for name in ("first", "second"))
    assert [figure["caption"] for figure in first["figures"]] == [
        figure["caption"] for figure in second["figures"]
    ]
    for file in sorted((tmp_path / "first").iterdir()):
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes(), file.name


def _check_report(folder: Path, facts: dict[str, Any]) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.loaded) == len(facts["figures"])
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.loaded)
    assert "@import" not in text
    assert "url(" not in text
    assert len(page.anchors) == len(set(page.anchors))
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.anchors, link
        else:
            assert (folder / link).is_file(), link
    for claim in facts["claims"]:
        assert claim["name"] in page.anchors
    for figure in facts["figures"]:
        assert figure["name"] in page.anchors


@pytest.mark.full
def test_verdicts_do_not_depend_on_the_seed() -> None:
    lab = Lab(seed=20231109, quick=True)
    outcomes = [Outcome(claim, tuple(claim.measure(lab))) for claim in CLAIMS]
    assert [outcome.claim.name for outcome in outcomes if not outcome.as_expected] == []
    for outcome in outcomes:  # every note rests on a number, and quotes only numbers that exist
        kinds = {number.kind for number in outcome.measured}
        resting = {
            note.kind for note in outcome.claim.notes if note.kind is not Kind.REMARK or "{" not in note.text
        }
        assert len(outcome.notes) == len(outcome.claim.notes)
        assert resting <= kinds, outcome.claim.name


@pytest.mark.full
def test_one_figure_alone(tmp_path: Path) -> None:
    facts = run("fig1", "--quick", "--out", str(tmp_path / "new" / "folder"))
    assert sorted(file.name for file in (tmp_path / "new" / "folder").iterdir()) == ["fig1.png", "fig1.svg"]
    assert facts["claims"] == []
    assert facts["report"] is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fig9"], "evenly: There is no figure 'fig9'; the figures are fig1, fig2, fig3, fig4, fig5, fig6.\n"),
        (["--seed", "-1"], "seed must be a whole number from 0 to"),
        (["fig1", "fig2", "fig1"], "evenly: Name each figure once; fig1 is given twice.\n"),
        (["--out="], "evenly: --out must name a folder, not ''; for the current one, type --out .\n"),
        (["--out", "taken"], "evenly: Cannot write into taken: it is not a folder.\n"),
        (["--out", "taken/below"], "evenly: Cannot write into taken/below: not a directory.\n"),
        (["--out", "/proc"], "evenly: Cannot write into /proc: "),  # root may, says os.access
        (["--out", "a\0b"], "evenly: Cannot write into 'a\\x00b': embedded null byte.\n"),
        (["--out", "long" * 2000], ": file name too long.\n"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("mine", encoding="utf-8")
    assert main(["paper", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(re.findall(r"\n", error)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    ("against", "verdict"),
    [
        ((), Verdict.HOLDS),
        ((Kind.READING,), Verdict.READING),
        ((Kind.FINITE, Kind.READING), Verdict.FINITE),
        ((Kind.READING, Kind.ERRATUM, Kind.FINITE), Verdict.ERRATUM),
        ((None,), Verdict.FAILS),
        ((Kind.ERRATUM, None), Verdict.FAILS),
    ],
)
def test_the_verdict_follows_from_the_numbers(against: tuple[Kind | None, ...], verdict: Verdict) -> None:
    numbers = [Measured("x", 1.0, supports=kind not in against, kind=kind) for kind in (None, *Kind)]
    assert _outcome(numbers).verdict is verdict


@pytest.mark.parametrize("kind", [Kind.REMARK, Kind.ERRATUM, Kind.FINITE])
@pytest.mark.parametrize("supports", [True, False])
def test_every_note_must_apply(kind: Kind, supports: bool) -> None:
    """Also a note that does not decide the verdict, because the statement fails or another erratum is worse."""
    fits = supports == (kind is Kind.REMARK)
    failing = [Measured("x", 1.0, supports=False), Measured("y", 1.0, supports=supports, kind=kind)]
    corrected = [Measured("x", 1.0, supports=False, kind=Kind.ERRATUM), failing[1]]
    for expected in Verdict:
        assert _outcome(failing, expected=expected).as_expected == (fits and expected is Verdict.FAILS)
        assert _outcome(corrected, expected=expected).as_expected == (fits and expected is Verdict.ERRATUM)


def test_a_note_quotes_the_numbers_of_the_run() -> None:
    numbers = [Measured("x", 0.25, supports=True).named("share"), Measured("y", 7.0, supports=True)]
    outcome = _outcome(numbers, notes=(Note(Kind.REMARK, "It is {share:.1%}."),))
    assert [note.text for note in outcome.notes] == ["It is 25.0%."]
    assert outcome.to_dict()["notes"] == [{"kind": "remark", "text": "It is 25.0%."}]


def _outcome(numbers: list[Measured], notes: tuple[Note, ...] = (), expected: Verdict = Verdict.HOLDS) -> Outcome:
    claim = Claim(
        name="c",
        place="Sec. 2",
        labels=("Sec. 2",),
        statement="So.",
        how="Thus.",
        measure=lambda _: numbers,
        notes=notes,
        expected=expected,
    )
    return Outcome(claim, tuple(claim.measure(Lab())))


def test_a_target_that_cannot_be_written_is_found_before_the_work(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "report.html").mkdir()
    assert main(["paper", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"evenly: Cannot write {tmp_path}/report.html: it is a directory.\n"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
