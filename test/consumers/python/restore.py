"""Restores objects from Avro with fastavro, by nothing but their schema.

Each line of the input is {"schema": PATH, "value": BASE64}; each line of the output is the object as JSON.
"""
import base64
import datetime
import decimal
import io
import json
import sys

import fastavro

REST = "kubecdc_rest"


class Literal(str):
    """A number as it is written."""


def plain(text):
    return json.loads(text, parse_int=Literal, parse_float=Literal)


def dump(value):
    """JSON, with numbers as they were written."""
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return format(decimal.Decimal(repr(value)), "f").removesuffix(".0")  # as JSON's writers have it
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(key) + ":" + dump(one) for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(one) for one in value) + "]"
    return json.dumps(value)


def integer(text):
    digits = text[1:] if text.startswith("-") else text
    return digits.isascii() and digits.isdigit() and (text == "0" or not digits.startswith("0"))


def meant(schema):
    """The branch of a union with null that is not null."""
    return schema[1] if isinstance(schema, list) else schema


PRIMITIVE = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


def full(schema, namespace):
    """The schema with each name in full: others' writers leave out the namespace that a name is in."""
    if isinstance(schema, list):
        return [full(one, namespace) for one in schema]
    if isinstance(schema, str):
        return schema if schema in PRIMITIVE or "." in schema or not namespace else namespace + "." + schema
    schema = dict(schema)
    if schema["type"] == "record":
        namespace = schema.pop("namespace", namespace)
        if "." not in schema["name"] and namespace:
            schema["name"] = namespace + "." + schema["name"]
        namespace = schema["name"].rpartition(".")[0]
        schema["fields"] = [{**field, "type": full(field["type"], namespace)} for field in schema["fields"]]
    for inner in ("items", "values"):
        if inner in schema:
            schema[inner] = full(schema[inner], namespace)
    return schema


class Reader:
    def __init__(self, schema):
        schema = full(schema, "")
        self.named = {}
        self.schema = schema
        self.parsed = fastavro.parse_schema(schema)
        self.collect(schema)

    def collect(self, schema):
        schema = meant(schema)
        if not isinstance(schema, dict):
            return
        for field in schema.get("fields", []):
            self.collect(field["type"])
        self.collect(schema.get("items") or schema.get("values"))
        if schema["type"] == "record":
            self.named[schema["name"]] = schema

    def object(self, message):
        stream = io.BytesIO(message)
        record = fastavro.schemaless_reader(stream, self.parsed)
        if stream.read():
            raise ValueError("bytes are left over")
        return self.value(self.schema, record, None)

    def value(self, schema, value, rest):
        """One value that is not null, with what the rest has of it."""
        schema = meant(schema)
        if isinstance(schema, str) and schema in self.named:
            schema = self.named[schema]
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind == "record":
            return self.record(schema, value, rest or {})
        if kind == "map":
            restored = {key: self.element(schema["values"], one, (rest or {}).get(key)) for key, one in value.items()}
            return {**(rest or {}), **restored}
        if kind == "array":
            return [self.element(schema["items"], one, (rest or {}).get(str(i))) for i, one in enumerate(value)]
        return scalar(schema, value) if rest is None else rest

    def element(self, schema, value, rest):
        return None if value is None else self.value(schema, value, rest)

    def record(self, schema, value, rest):
        if REST in value:  # of its own
            rest = plain(value[REST]) if value[REST] is not None else {}
        restored = dict(rest)
        for field in schema["fields"]:
            name = field.get("kubecdc.name", field["name"])
            if field["name"] != REST and value[field["name"]] is not None:
                restored[name] = self.value(field["type"], value[field["name"]], rest.get(name))
        return restored


def scalar(schema, value):
    if isinstance(value, datetime.datetime):
        digits = ".%f" if schema["kubecdc.digits"] else ""
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S" + digits + "Z")
    kind = schema.get("kubecdc.type") if isinstance(schema, dict) else None
    if kind == "json":
        return plain(value)
    if kind == "int-or-string" and integer(value):
        return Literal(value)
    return value


def main():
    readers = {}
    for line in sys.stdin:
        wanted = json.loads(line)
        path = wanted["schema"]
        if path not in readers:
            with open(path, encoding="utf-8") as file:
                readers[path] = Reader(json.load(file))
        print(dump(readers[path].object(base64.b64decode(wanted["value"]))))


main()
