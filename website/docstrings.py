"""Our docstrings in the style that Griffe parses (Google's).

They are plain text, written to be read in an editor: a list of "name: description" for parameters or fields, and a
last line `Paper:`. The list becomes a section, to which the renderer adds types and defaults.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_ENTRY = re.compile(r"([a-z_][a-z0-9_]*(?:, [a-z_][a-z0-9_]*)*): (.*)")


def in_google_style(text: str, title: str, names: Collection[str]) -> str:
    """Return the docstring with its list of names as the section `title`."""
    entries: dict[str, list[str]] = {}
    kept: list[str] = []
    place: int | None = None  # of the section among the lines that are kept
    current: list[str] = []
    for line in text.splitlines():
        match = _ENTRY.fullmatch(line)
        if match and set(match[1].split(", ")) <= set(names):
            place = len(kept) if place is None else place
            current = match[1].split(", ")
            entries.update({name: [match[2]] for name in current})
        elif current and line.startswith(" "):
            for name in current:
                entries[name].append(line.strip())
        else:
            current = []
            kept.append(re.sub(r"^Paper: ", "**Paper:** ", line))
    if place is None:
        return "\n".join(kept)
    section = [f"{title}:", *(f"    {name}: {' '.join(words)}" for name, words in entries.items())]
    return "\n".join([*kept[:place], "", *section, "", *kept[place:]])
