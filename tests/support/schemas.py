"""The JSON schemas in docs/schema, by the `kind` of the document they describe."""

import functools
import glob
import json
import os

import jsonschema

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs", "schema")


@functools.lru_cache(maxsize=None)
def files():
    """{file name: schema}."""
    found = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        with open(path, encoding="utf-8") as source:
            found[os.path.basename(path)] = json.load(source)
    return found


def kinds_of(schema):
    """The values that a schema allows for `kind`."""
    kind = schema.get("properties", {}).get("kind", {})
    return kind.get("enum", [kind["const"]] if "const" in kind else [])


def for_kind(kind):
    """The schema of a kind, or None."""
    for schema in files().values():
        if kind in kinds_of(schema):
            return schema
    return None


def complaints(document):
    """What is wrong with a document by its kind's schema: [] when it fits."""
    schema = for_kind(document.get("kind"))
    if schema is None:
        return [f"docs/schema has nothing for kind {document.get('kind')}"]
    store = {schema.get("$id", name): schema for name, schema in files().items()} | files()
    resolver = jsonschema.RefResolver(base_uri=schema.get("$id", ""), referrer=schema, store=store)
    validator = jsonschema.validators.validator_for(schema)(schema, resolver=resolver)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(document)]
