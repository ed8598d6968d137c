"""``placer schema``: the schema as it is published."""

import json

import jsonschema
import pytest
from click.testing import CliRunner

from placer.cli.main import main
from placer.formats.schemas import SCHEMAS, schema_text


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed(name: str) -> None:
    """What is printed is a JSON Schema of that format, the file that is published."""
    result = CliRunner().invoke(main, ["schema", name])
    assert result.exit_code == 0
    assert result.output == schema_text(name)
    schema = json.loads(result.output)
    jsonschema.Draft202012Validator.check_schema(schema)
    if name != "folder":  # placer.yaml alone says no format
        assert schema["properties"]["format"] == {"const": f"placer/{name}"}


def test_an_unknown_format_is_refused() -> None:
    """The message names those that there are."""
    result = CliRunner().invoke(main, ["schema", "hosts"])
    assert result.exit_code == 2
    assert "'topology'" in result.output
