"""Links from claims to code and tests."""

import ast
import re
from pathlib import Path

from evenly.paper import claims
from evenly.paper.claims import CLAIMS, SECTIONS
from evenly.paper.claims.claim import Kind, Verdict
from evenly.paper.report.references import link_to_code, link_to_test, references


def test_every_claim_leads_to_rows_of_the_map() -> None:
    known = references()
    for claim in CLAIMS:
        assert claim.labels, claim.name
        assert set(claim.labels) <= set(known), claim.name


def test_anchors_and_names_are_unique() -> None:
    anchors = [reference.anchor for reference in references().values()]
    names = [claim.name for claim in CLAIMS]
    assert len({*anchors, *names}) == len(anchors) + len(names)


def test_links_lead_to_files(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    for reference in references().values():
        links = [link_to_code(name, folder) for name in reference.code]
        links += [link_to_test(name, folder) for name in reference.tests]
        assert links
        for link in links:
            assert link is not None
            assert (folder / link).is_file(), reference


def test_every_section_has_claims_and_each_claim_has_its_texts() -> None:
    assert len(CLAIMS) >= 25
    assert all(section.claims for section in SECTIONS)
    for claim in CLAIMS:
        for text in (claim.statement, claim.how):
            assert text.endswith("."), claim.name
            assert "\\" not in text and "$" not in text, claim.name
        assert claim.place.startswith(("Sec. ", "Secs ")), claim.name


def test_every_note_takes_its_numbers_from_the_run_or_from_a_constant() -> None:
    """Numbers in a note would grow stale: only references such as eq. (14) and single digits may stay."""
    for file in sorted(Path(claims.__file__).parent.glob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Note":
                for part in ast.walk(call.args[1]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        words = re.sub(r"\{[^}]*\}|\(\d+[a-z]?\)|(Sec|App)s?\.? [A-C]?[\d.]+", "", part.value)
                        assert not re.search(r"\d[.,]?\d|\d ?%", words), (file.name, part.value)


def test_the_expected_verdict_of_a_claim_has_its_note() -> None:
    needed = {Verdict.ERRATUM: Kind.ERRATUM, Verdict.FINITE: Kind.FINITE, Verdict.READING: Kind.READING}
    for claim in CLAIMS:
        kinds = {note.kind for note in claim.notes}
        assert claim.expected not in needed or needed[claim.expected] in kinds, claim.name
