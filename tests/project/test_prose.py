"""Prose: Markdown fits into 110 columns, and phrases that read like a translation stay out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".github", "bench", "chaos", "docs", "examples", "src", "tests", "website")
KINDS = {".md", ".py", ".jinja", ".pyi", ".toml"}
WIDTH = 110
# A reader stumbles over each of these, and each has a plain alternative: name the quantity, or name the caller.
BANNED = (
    "so many", "whoever", "somebody", "nobody", "without chance", "as it should be", "very many", "is not as it",
)  # fmt: skip
UNBREAKABLE = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>")


def files() -> list[Path]:
    """Return the text files of the project, except this one, which has to name the phrases."""
    found = [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    return sorted(path for path in found if path.suffix in KINDS and path != Path(__file__))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def phrase(words: str) -> re.Pattern[str]:
    """Match the words also across lines, in comments and in names with underscores."""
    joined = r"[\s#_]+".join(map(re.escape, words.split()))
    return re.compile(rf"(?<![^\W_]){joined}(?![^\W_])", re.IGNORECASE)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a page that an editor can wrap: no code, tables, headings or pictures."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if not in_code and not line.lstrip().startswith(("|", "#", "![", "```", "<!--")):
            yield number, line


def can_be_wrapped(line: str) -> bool:
    """Return whether the line is too long and has a space to break it at, outside of code and link targets."""
    item = re.match(r"\s*(?:[-*]|\d+\.)?\s*", line)
    start = item.end() if item else 0
    solid = UNBREAKABLE.sub(lambda match: "x" * len(match[0]), line)
    return len(line) > WIDTH and " " in solid[start : WIDTH + 1].rstrip()


@pytest.mark.parametrize("page", [path for path in files() if path.suffix == ".md"], ids=named)
def test_markdown_is_wrapped(page: Path) -> None:
    lines = prose(page.read_text(encoding="utf-8"))
    assert [f"line {number}" for number, line in lines if can_be_wrapped(line)] == []


@pytest.mark.parametrize("path", files(), ids=named)
def test_banned_phrases_stay_out(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = [(words, match.start()) for words in BANNED for match in phrase(words).finditer(text)]
    assert [f"line {text.count(chr(10), 0, at) + 1}: {words}" for words, at in found] == []


def test_the_checks_find_what_they_look_for() -> None:
    assert {"README.md", "pyproject.toml", "src/evenly/__init__.pyi", "docs/tutorial.md"} <= set(
        map(named, files())
    )
    assert phrase("so many").search("# with So\n    # many of them")
    assert phrase("so many").search("def test_so_many_pools")
    assert phrase("nobody").search("def test_it_asks_nobody(")
    assert not phrase("nobody").search("a nobodyish name")
    long = "word " * 23
    assert can_be_wrapped(long)
    assert not can_be_wrapped(long[:WIDTH])
    assert not can_be_wrapped("- `" + long + "`")
    assert not can_be_wrapped("[link](https://" + "x" * WIDTH + ")")
    page = f"text\n```\n{long}\n```\n| {long} |\n# {long}\n![{long}](x.png)\nend"
    assert list(prose(page)) == [(1, "text"), (8, "end")]
