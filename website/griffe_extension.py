"""The Griffe extension that the API reference is read with: see `website.docstrings`."""

from __future__ import annotations

import griffe

from website.docstrings import in_google_style


class PlainDocstrings(griffe.Extension):
    """Rewrites docstrings in the style that Griffe parses (Google's)."""

    def on_function(self, *, func: griffe.Function, **_: object) -> None:
        """Describe the parameters of a function."""
        if func.docstring:
            names = {parameter.name for parameter in func.parameters}
            func.docstring.value = in_google_style(func.docstring.value, "Parameters", names)

    def on_class(self, *, cls: griffe.Class, **_: object) -> None:
        """Describe the fields of a class that the docstring lists."""
        fields = [
            name
            for name, member in cls.members.items()
            if isinstance(member, griffe.Attribute)
            and member.annotation is not None
            and "property" not in member.labels
            and not name.startswith("_")
        ]
        if cls.docstring:
            cls.docstring.value = in_google_style(cls.docstring.value, "Attributes", fields)

    def on_attribute(self, *, attr: griffe.Attribute, **_: object) -> None:
        """Mark the paper's place in the docstring of a property or a constant."""
        if attr.docstring:
            attr.docstring.value = in_google_style(attr.docstring.value, "Attributes", ())
