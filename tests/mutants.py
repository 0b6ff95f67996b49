"""The mutants of a source file: small changes that a test should notice.

A mutant changes a comparison, an operator, `and`/`or`, `not`, a number, True or False, a condition, a returned
value, `break` or `continue`, or leaves out a statement. Annotations, decorators, assertions, imports and strings
stay as they are, except for strings in comparisons.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change: the bytes from `start` to `end` become `new`.

    `file` is relative to `src`. `first_line` and `last_line` are those of the outermost function around it, or 0.
    """

    file: str
    line: int
    text: str
    function: str
    first_line: int
    last_line: int
    start: int
    end: int
    old: str
    new: str
    is_statement: bool

    @property
    def change(self) -> str:
        """The mutation in words."""
        return f"{self.old} -> {self.new}"

    def __str__(self) -> str:
        where = f" in {self.function}" if self.function else ""
        return f"src/{self.file}:{self.line}{where}: {self.change}  [{self.text}]"

    def applied_to(self, source: bytes) -> bytes:
        """Return the source with the change."""
        assert " ".join(source[self.start : self.end].decode().split()) == self.old, (
            f"{self.file} is another version."
        )
        new = self.new if self.is_statement else f"({self.new})"
        return source[: self.start] + new.encode() + source[self.end :]


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[tuple[ast.stmt | ast.expr, str, tuple[ast.AST, ...]]] = []
        self._around: tuple[ast.AST, ...] = ()  # classes and functions

    def _add(self, node: ast.stmt | ast.expr, new: str | ast.AST) -> None:
        self.found.append((node, new if isinstance(new, str) else ast.unparse(new), self._around))

    def _inside(self, node: ast.AST, children: list[ast.AST]) -> None:
        before, self._around = self._around, (*self._around, node)
        for child in children:
            self.visit(child)
        self._around = before

    # --- what is skipped ---------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        for default in defaults:
            self.visit(default)
        self._inside(node, list(node.body))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node, list(node.body))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Attribute) and node.value is not None:
            self._left_out(node)
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: an assertion
            self.visit(node.value)

    # --- expressions -------------------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        for position, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                changed = copy.copy(node)
                changed.ops = [*node.ops[:position], other(), *node.ops[position + 1 :]]
                self._add(node, changed)
        for side in (node.left, *node.comparators):
            if isinstance(side, ast.Constant) and isinstance(side.value, str | bytes):
                value = side.value
                self._add(side, repr(value + "~" if isinstance(value, str) else value + b"~"))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in ARITHMETIC:
            changed = copy.copy(node)
            changed.op = ARITHMETIC[type(node.op)]()
            self._add(node, changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = copy.copy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, changed)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._add(node, node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, repr(not node.value))
        elif isinstance(node.value, int | float):
            for other in (node.value + 1, node.value - 1):
                self._add(node, repr(other))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test)
        self.generic_visit(node)

    def _condition(self, test: ast.expr) -> None:
        changed_anyway = isinstance(test, ast.Compare | ast.BoolOp | ast.Constant) or (
            isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        )
        if not changed_anyway:
            self._add(test, ast.UnaryOp(ast.Not(), test))

    # --- statements --------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                self._add(node.value, "None")
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call):
            self._left_out(node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._left_out(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in ARITHMETIC:
            value = ast.BinOp(node.target, ARITHMETIC[type(node.op)](), node.value)
            self._add(node, f"{ast.unparse(node.target)} = {ast.unparse(value)}")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._left_out(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._left_out(node)
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "break")

    def _left_out(self, node: ast.stmt) -> None:
        if not any(getattr(around, "name", "") == "__init__" for around in self._around):
            self._add(node, "pass")


def mutants_of(path: Path, src: Path) -> Iterator[Mutant]:
    """Return all mutants of a file under `src` that Python can compile."""
    source = path.read_bytes()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    finder = _Finder()
    finder.visit(ast.parse(source))
    for node, new, around in finder.found:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        functions = (outer for outer in around if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef))
        function = next(functions, None)
        mutant = Mutant(
            file=path.relative_to(src).as_posix(),
            line=node.lineno,
            text=lines[node.lineno - 1].decode().strip(),
            function=".".join(getattr(outer, "name", "") for outer in around),
            first_line=0 if function is None else min(n.lineno for n in (function, *function.decorator_list)),
            last_line=0 if function is None else function.end_lineno or 0,
            start=start,
            end=end,
            old=" ".join(source[start:end].decode().split()),
            new=new,
            is_statement=isinstance(node, ast.stmt),
        )
        with suppress(SyntaxError):
            compile(mutant.applied_to(source), path, "exec")
            yield mutant
