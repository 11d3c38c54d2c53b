"""`homeai schema`: what the files of `homeai export` hold, for who writes programs that read them."""

from __future__ import annotations

import argparse
import json

from homeai.cli.console import write
from homeai.cli.parser import Parser
from homeai.errors import UsageError

SUMMARY = "prints what the jsonl and csv files of homeai export hold"

WHAT = {
    "jsonl": "the JSON Schema of a record's lines; what homeai schema does",
    "csv": "the columns of the table of answers",
    "tokens": "the columns of the table of tokens",
}


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai schema",
        SUMMARY,
        usage="[jsonl | csv | tokens]",
        examples=("homeai schema", "homeai schema csv"),
        lists={"What to print": WHAT},
    )
    made.add_argument("what", metavar="WHAT", nargs="?", default="jsonl", help="of which files")
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Print it."""
    if arguments.what not in WHAT:
        raise UsageError(
            f'There is no schema of "{arguments.what}".', code="usage", help=f"There are {', '.join(WHAT)}."
        )
    if arguments.what == "jsonl":
        from homeai.export.schema import line_schema

        write(json.dumps(line_schema(), indent=2) + "\n")
        return 0
    from homeai.cli.table import table
    from homeai.export.formats.csv import COLUMNS, TOKEN_COLUMNS

    columns = COLUMNS if arguments.what == "csv" else TOKEN_COLUMNS
    write(table(("column", "what it is"), [(column.name, column.about) for column in columns]))
    return 0
