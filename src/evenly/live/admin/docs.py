"""The documentation page of a port, made from its OpenAPI schema. It loads nothing from the internet."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from evenly.live.addresses import Address

Schema = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A parameter, a field or a response status: its name and its meaning."""

    name: str
    text: str


@dataclass(frozen=True)
class Operation:
    """One method of one path, as the page shows it."""

    method: str
    path: str
    summary: str
    text: str
    inputs: list[Row]
    curl: str
    status: str
    example: str
    fields: list[Row]
    refusals: list[Row]

    @property
    def anchor(self) -> str:
        """The fragment that links to it."""
        return "-".join(
            [self.method.lower(), *(part for part in self.path.split("/") if part and "{" not in part)]
        )


@dataclass(frozen=True)
class Port:
    """What the page says about the port: its name, and the token that its examples read from `variable`.

    `token` is the name of the token, None if none is needed.
    """

    name: str
    token: str | None
    variable: str
    scheme: str = "http"


_NAME, _IPV6 = "address.invalid:0", "[address.invalid]:0"  # a shell needs quotes around brackets


class DocsPage:
    """The page of a port. It is rendered once: that takes tens of milliseconds, in which picks would wait."""

    def __init__(self, schema: Schema, port: Port) -> None:
        self._scheme = port.scheme
        environment = Environment(
            loader=PackageLoader("evenly.live.admin", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        template = environment.get_template("docs.html.jinja")
        self._name, self._ipv6 = (_rendered(template, schema, port, address) for address in (_NAME, _IPV6))

    def at(self, address: Address, scheme: str | None = None) -> str:
        """Return the page whose example commands call this address, with this scheme in place of the port's."""
        text = str(address)
        page, name = (self._ipv6, _IPV6) if text.startswith("[") else (self._name, _NAME)
        if scheme is not None:
            page = page.replace(f"{self._scheme}://{name}", f"{scheme}://{name}")
        return page.replace(name, text)


def _rendered(template: Template, schema: Schema, port: Port, address: str) -> str:
    sections: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method, described in methods.items():
            operation = _Reader(schema, address, port).operation(method.upper(), path, described)
            sections.setdefault(described["tags"][0], []).append(operation)
    return template.render(info=schema["info"], sections=sections, port=port)


@dataclass(frozen=True)
class _Reader:
    schema: Schema
    address: str
    port: Port

    def operation(self, method: str, path: str, described: Schema) -> Operation:
        """Read one operation from the schema."""
        parameters = described.get("parameters", [])
        body = self._shape(described.get("requestBody", {}))
        answers = {status: answer for status, answer in described["responses"].items() if status[0] < "4"}
        status, answer = next(iter(answers.items()))
        return Operation(
            method=method,
            path=path,
            summary=described["summary"],
            text=described["description"],
            inputs=[Row(entry["name"], entry["description"]) for entry in parameters] + list(self._fields(body)),
            curl=self._curl(method, path, parameters, body, public="security" not in described),
            status=status,
            example=_example(answer),
            fields=list(self._fields(self._shape(answer))),
            refusals=[
                Row(other, entry["description"])
                for other, entry in described["responses"].items()
                if other not in answers
            ],
        )

    def _curl(self, method: str, path: str, parameters: list[Schema], body: Schema, *, public: bool) -> str:
        for parameter in [each for each in parameters if each["in"] == "path"]:
            path = path.replace(f"{{{parameter['name']}}}", parameter["schema"]["examples"][0])
        url = shlex.quote(f"{self.port.scheme}://{self.address}{path}")
        parts = [f"curl {url}" if method == "GET" else f"curl -X {method} {url}"]
        if self.port.token is not None and not public:
            parts.append(f'-H "Authorization: Bearer ${self.port.variable}"')
        if body:
            parts.append("-H 'Content-Type: application/json'")
            parts.append(f"-d {shlex.quote(json.dumps(body['examples'][0]))}")
        return " \\\n  ".join(parts)

    def _shape(self, described: Schema) -> Schema:
        """Return the schema of a JSON body, empty if there is none."""
        return self._resolved(described.get("content", {}).get("application/json", {}).get("schema", {}))

    def _resolved(self, shape: Schema) -> Schema:
        for possible in shape.get("anyOf", []):
            if possible.get("type") != "null":
                return self._resolved(possible)
        if "$ref" not in shape:
            return shape
        found: Schema = self.schema["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]]
        return found

    def _fields(self, shape: Schema, before: str = "") -> Iterator[Row]:
        """Yield the fields of a schema and of the schemas inside it."""
        for name, field in shape.get("properties", {}).items():
            inner = self._resolved(field)
            items = self._resolved(inner.get("items", {}))
            yield Row(before + name, field.get("description") or inner["description"])
            yield from self._fields(inner, f"{before}{name}.")
            yield from self._fields(items, f"{before}{name}[].")


def _example(answer: Schema) -> str:
    """Format the example, with each innermost object on one line; the description of an empty answer."""
    if "content" not in answer:
        return str(answer["description"])
    (content,) = answer["content"].values()
    if isinstance(content["example"], str):
        return str(content["example"])
    return re.sub(r"\{[^{}]*\}", _on_one_line, json.dumps(content["example"], indent=2))


def _on_one_line(text: re.Match[str]) -> str:
    return re.sub(r"\s*\n\s*", " ", text[0]).replace("{ ", "{").replace(" }", "}")
