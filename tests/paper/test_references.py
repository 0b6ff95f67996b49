"""Links from claims to code and tests."""

from pathlib import Path

from evenly.paper.claims import CLAIMS, SECTIONS
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
