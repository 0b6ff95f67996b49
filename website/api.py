"""Pages of the API reference: which names each package offers. Their text comes from the docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

TOP = "evenly"
PACKAGES = (
    TOP,
    "evenly.sim",
    "evenly.theory",
    "evenly.advice",
    "evenly.paper.figures",
    "evenly.core",
    "evenly.sweeps",
    "evenly.testing",
    "evenly.core.protocol",
    "evenly.live.agents",
    "evenly.logs",
    "evenly.whatif",
    "evenly.workload",
    "evenly.policies",
)


def write_pages(source: Path, folder: Path) -> None:
    """Write one page per package to `folder`."""
    folder.mkdir(parents=True)
    at_top = public_names(source, TOP)
    for package in PACKAGES:
        elsewhere = [] if package == TOP else [name for name in public_names(source, package) if name in at_top]
        (folder / f"{package}.md").write_text(_page(source, package, elsewhere), encoding="utf-8")


def public_names(source: Path, package: str) -> list[str]:
    """Return the names that a package offers, without its modules."""
    path = _path(source, package)
    stub = path.with_suffix(".pyi")
    if stub.exists():
        imports = [
            node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)
        ]
        names = [alias.name for node in imports if node.module != package for alias in node.names]
    else:
        names = _listed(path) or _defined(path)
    return sorted(names)


def _path(source: Path, package: str) -> Path:
    path = source.joinpath(*package.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _listed(path: Path) -> list[str]:
    """Return `__all__` of a module that writes it out."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _defined(path: Path) -> list[str]:
    """Return the public classes and functions of a module without `__all__`, and its annotated constants."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.append(ast.unparse(node.target))
    return [name for name in names if not name.startswith("_")]


def _page(source: Path, package: str, elsewhere: list[str]) -> str:
    docstring = ast.get_docstring(ast.parse(_path(source, package).read_text(encoding="utf-8"))) or ""
    parts = [f"# {package}", docstring.partition("\n\n")[0]]
    if elsewhere:
        links = ", ".join(f"[`{name}`]({TOP}.md#{TOP}.{name})" for name in elsewhere)
        parts.append(f"Also here, and described with [`{TOP}`]({TOP}.md): {links}.")
    names = [name for name in public_names(source, package) if name not in elsewhere]
    groups = {
        "Functions": [name for name in names if name.islower()],
        "Classes and types": [name for name in names if not name.islower() and not name.isupper()],
        "Data": [name for name in names if name.isupper()],
    }
    for title, members in groups.items():
        if members:
            parts.append(f"## {title}")
            parts.extend(f"::: {package}.{name}" for name in members)
    return "\n\n".join(parts) + "\n"
