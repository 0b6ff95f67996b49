"""Checks of the pages: wrapped lines, plain words, names, files and headings that exist, the map of the paper."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from evenly.paper.report.references import references
from website.stage import BrokenLinkError, stage

ROOT = Path(__file__).parents[1]
WIDTH = 110
# A reader stumbles over each of these, and each has a plain alternative: name the quantity, or name the caller.
BANNED = (
    "so many", "whoever", "somebody", "nobody", "without chance", "as it should be", "very many", "is not as it",
)  # fmt: skip
LABELS = [
    "Sec. 2", "Sec. 2.1", "eq. (1)", "Thm 1", "Def. 1", "Lem. 1", "Lem. 2", "Prop. 1", "Thm 2", "Ex. 1", "Ex. 2",
    "Cor. 1", "Thm 3", "Thm 4", "Prop. 2", "Prop. 3", "Sec. 4", "Sec. 4.1", "Def. 2", "Prop. 4", "Thm 5",
    "Prop. 5", "Thm 6", "Prop. 6", "eq. (13)", "Cor. 2", "Prop. 7", "Cor. 3", "App. B.1", "App. B.4",
    "Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6",
]  # fmt: skip
_TEXTS = {".md", ".py", ".jinja", ".pyi", ".toml"}
_FOLDERS = ("src", "tests", "tools", "docs", "bench", "chaos", "deploy", "examples", "website", ".github")
_UNBREAKABLE = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>")
_NAME = re.compile(r"`(evenly(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`")
_STEP = re.compile(r"`([a-z_0-9/]+\.py)(?:: (\w+))?`")
_TARGET = re.compile(r"(?:^|`)make ([a-z]+)(?=`|$| +#| +[A-Z]+=)", re.MULTILINE)
_ANCHOR = re.compile(r"\]\(([\w./-]*)#([^)\s]+)\)")
_ABOUT_PLACES = ("paper-map.md", "live.md", "architecture.md", "decisions")  # name modules that nothing exports


def texts() -> dict[str, str]:
    """Return the project's own text files by name, except this one, which has to name the phrases."""
    found = [*ROOT.glob("*"), *(path for folder in _FOLDERS for path in sorted((ROOT / folder).rglob("*")))]
    wanted = (path for path in found if path.suffix in _TEXTS and path.is_file() and path != Path(__file__))
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in wanted}


def problems() -> Iterator[str]:
    """Yield what is wrong with the pages."""
    found = texts()
    for name, text in found.items():
        yield from (f"{name}:{line}: a banned phrase: {words}" for line, words in banned_phrases(text))
        if name.endswith(".md"):
            yield from (f"{name}:{line}: longer than {WIDTH} columns" for line in unwrapped_lines(text))
            yield from (f"{name}: there is no make {each}" for each in missing_targets(text))
    pages = {name: text for name, text in found.items() if name == "README.md" or name.startswith("docs/")}
    # Pages for users first: what they name must be reached from `import evenly` alone.
    for name, text in sorted(pages.items(), key=lambda page: _is_about_places(page[0])):
        yield from (f"{name}: there is no {each}" for each in missing_names(text, imports=_is_about_places(name)))
    architecture = "docs/architecture.md"
    yield from (f"{architecture}: there is no {each}" for each in missing_files(pages[architecture]))
    yield from (f"{architecture}: {each}" for each in wrong_packages(pages[architecture]))
    yield from (f"docs/paper-map.md: {each}" for each in _wrong_rows())
    markdown = {name: text for name, text in found.items() if name.endswith(".md")}
    yield from (f"{name}: no heading: {link}" for name, link in missing_anchors(markdown))
    try:
        with TemporaryDirectory() as folder:
            stage(ROOT, Path(folder))
    except BrokenLinkError as error:
        yield str(error)


def banned_phrases(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and words of phrases to avoid, also across lines, in comments and in names with underscores."""
    for words in BANNED:
        joined = r"[\s#_]+".join(map(re.escape, words.split()))
        for match in re.finditer(rf"(?<![^\W_]){joined}(?![^\W_])", text, re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, words


def missing_anchors(pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield page and target of links to a heading that does not exist, on these pages by name."""
    known: dict[str, set[str]] = {}
    for name, text in pages.items():
        for path, anchor in _ANCHOR.findall("\n".join(_prose(text))):
            page = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if page not in known and page in pages:
                known[page] = set(anchors(pages[page]))
            if anchor not in known.get(page, {anchor}):
                yield name, f"{path}#{anchor}"


def anchors(text: str) -> Iterator[str]:
    """Yield the anchors of a page's headings by the rule of the site: `pymdownx.slugs` in lower case."""
    seen: Counter[str] = Counter()
    for line in _prose(text):
        if heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
            shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading[1])
            anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
            yield f"{anchor}_{seen[anchor]}" if seen[anchor] else anchor
            seen[anchor] += 1


def _prose(text: str) -> Iterator[str]:
    """Yield the lines that are not code."""
    in_code = False
    for line in text.splitlines():
        fence = line.lstrip().startswith(("```", "~~~"))
        in_code ^= fence
        if not (in_code or fence):
            yield line


def unwrapped_lines(text: str) -> Iterator[int]:
    """Yield the numbers of lines that are too long and can be broken: no code, table, heading, picture or link."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if in_code or line.lstrip().startswith(("|", "#", "![", "```", "<!--")):
            continue
        item = re.match(r"\s*(?:[-*]|\d+\.)?\s*", line)
        solid = _UNBREAKABLE.sub(lambda match: "x" * len(match[0]), line)
        if len(line) > WIDTH and " " in solid[item.end() if item else 0 : WIDTH + 1].rstrip():
            yield number


def missing_names(text: str, *, imports: bool) -> Iterator[str]:
    """Yield dotted names in backticks that do not exist. Without `imports`, attributes alone must lead there."""
    for name in sorted(set(_NAME.findall(text))):
        first, *parts = name.split(".")
        found: object = import_module(first)
        for count, part in enumerate(parts, 2):
            try:
                if imports and not hasattr(found, part):
                    import_module(".".join(name.split(".")[:count]))
                found = getattr(found, part)
            except (AttributeError, ModuleNotFoundError):
                yield name
                break


def missing_files(text: str) -> Iterator[str]:
    """Yield the files in backticks that do not exist, and those without the function or class named after them."""
    for file, name in sorted(set(_STEP.findall(text))):
        folders = [ROOT] if file.startswith(("tests/", "tools/")) else [ROOT / "src" / "evenly"]
        path = next(
            (each for folder in folders for each in (folder / file, *folder.rglob(file)) if each.exists()), None
        )
        if path is None or (name and name not in _defined(path)):
            yield f"{file}: {name}" if name else file


def missing_targets(text: str) -> Iterator[str]:
    """Yield the targets of make that a page names, in backticks or at the start of a line, and we do not have."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    yield from sorted(set(_TARGET.findall(text)) - targets)


def wrong_packages(text: str) -> Iterator[str]:
    """Yield packages in the second column of a table that do not exist, and packages that no table names."""
    source = ROOT / "src" / "evenly"
    cells = (line.split("|")[2] for line in text.splitlines() if line.startswith("| "))
    named = {name for cell in cells for name in re.findall(r"`([a-z_.]+)`", cell)}
    for name in sorted(named):
        path = source / name.replace(".", "/")
        if not (path.is_dir() or path.with_suffix(".py").is_file()):
            yield f"there is no {name}"
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    yield from (f"no row for {each}" for each in sorted(packages - {name.partition(".")[0] for name in named}))


def _is_about_places(page: str) -> bool:
    return any(part in _ABOUT_PLACES for part in Path(page).parts)


def _defined(path: Path) -> set[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kinds)}


def _wrong_rows() -> Iterator[str]:
    """Yield statements of the paper without a row, and rows whose code or tests do not exist or do not cite it."""
    rows = references()
    yield from (f"no row, or no longer a statement: {label}" for label in sorted(rows.keys() ^ set(LABELS)))
    for label, row in rows.items():
        kind, _, number = label.partition(" ")
        plural = kind.rstrip(".") + "s"  # "Exs 1 and 2", "eqs. (13)-(14)"
        cited = re.compile(rf"\b{re.escape(label)}(?!\d)|\b{plural}\.? [^.]*?{re.escape(number)}(?!\d)")
        documented = [" ".join((_resolved(name).__doc__ or "").split()) for name in row.code]
        if not any("Paper:" in text and cited.search(text) for text in documented):
            yield f"no code of {label} cites it"
        for test in row.tests or ("no test",):
            file, _, function = test.partition("::")
            if not (ROOT / "tests" / file).is_file() or function not in _defined(ROOT / "tests" / file):
                yield f"{label}: there is no {test}"


def _resolved(name: str) -> object:
    """Return the module, class, function or method with this dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)
