"""A page as files that work without a server, opened from disk as well.

Browsers load neither modules nor workers from disk. So the modules become one plain script, each in a function
of its own, and the page runs without a worker. Only what our own modules use is understood: named imports and
exports.
"""

from __future__ import annotations

import posixpath
import re

from evenly.web.assets import Page

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:const|class|function) (\w+))", re.MULTILINE)
_MODULE_TAG = re.compile(r'<script src="(web/[^"]+\.js)" type="module"></script>')
_WORKER = re.compile(r' data-worker="[^"]*"')


def exported(page: Page) -> dict[str, bytes]:
    """Return the files of a page by their path, with one script in place of its modules."""
    files = page.files
    index = files["index.html"].decode()
    tag = _MODULE_TAG.search(index)
    assert tag is not None, "a page with modules names the first one"
    modules: dict[str, str] = {}
    _add(tag[1], files, modules)
    script = f"web/{page.name}.js"
    index = _WORKER.sub("", index.replace(tag[0], f'<script src="{script}" defer></script>'))
    kept = {path: body for path, body in files.items() if not path.endswith(".js") or "/vendor/" in path}
    return {**kept, "index.html": index.encode(), script: "".join(modules.values()).encode()}


def _add(path: str, files: dict[str, bytes], modules: dict[str, str]) -> None:
    """Add a module after those that it imports."""
    if path in modules:
        return
    code = files[path].decode()
    for _, target in _IMPORT.findall(code):
        _add(_resolved(path, target), files, modules)
    modules[path] = _wrapped(path, code)


def _wrapped(path: str, code: str) -> str:
    """Return a module as a function that returns its exports."""
    names = _EXPORT.findall(code)
    code = _EXPORT.sub("", code)
    code = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_name(_resolved(path, match[2]))};\n", code)
    assert not re.search(r"^(import|export)\b", code, re.MULTILINE), (
        f"{path} has an import or export of another form"
    )
    return f"const {_name(path)} = (() => {{\n{code}\nreturn {{ {', '.join(names)} }};\n}})();\n"


def _resolved(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _name(path: str) -> str:
    return "module_" + re.sub(r"\W", "_", path.removeprefix("web/").removesuffix(".js"))
