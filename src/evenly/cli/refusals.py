"""Refusals in the words of the command line: the library names a parameter, the user typed an option."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_OTHER_NAMES = {"mean_holding_times": "steady_state"}  # parameters whose option has another name
_LEADING = re.compile(r"([a-z][a-z_-]*) (?=must |is for )")
_SNAKE = re.compile(r"(?<![\w'\"-])[a-z]+(?:_[a-z]+)+(?![\w'\"])")


def with_options(sentence: str, options: Mapping[str, Sequence[str]], arguments: Iterable[str]) -> str:
    """Return the sentence with options (--sample-size) where it names parameters (sample_size).

    `options` has the spellings of each parameter's option. The parameter that is wrong, at the start, is replaced
    if its option was given: otherwise it is a key of a file. Elsewhere, a single word such as "load" is no name.
    """
    given = {argument.partition("=")[0] for argument in arguments}

    def option(name: str) -> str:
        spellings = options.get(_OTHER_NAMES.get(name, name), ())
        return spellings[0] if spellings else name

    start = ""
    leading = _LEADING.match(sentence)
    if leading:
        name = leading[1].replace("-", "_")
        name = _OTHER_NAMES.get(name, name)
        start = f"{option(name)} " if given & set(options.get(name, ())) else leading[0]
        sentence = sentence[leading.end() :]
    return start + _SNAKE.sub(lambda match: option(match[0]), sentence)
