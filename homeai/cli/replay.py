"""`homeai replay`: a recorded session played in the dashboard."""

from __future__ import annotations

import argparse
from math import isfinite

from homeai.cli.dashboard import on_screen, record_of
from homeai.cli.parser import Parser, settings_of
from homeai.errors import UsageError

SUMMARY = "plays a recorded session in the dashboard, without a model"

FASTEST = 1000.0


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai replay",
        SUMMARY,
        usage="[SESSION] [flags]",
        examples=("homeai replay", "homeai replay 12f36ff3 --speed 4", "homeai replay session.jsonl"),
        notes=("SESSION is last (the newest one), the beginning of an id, part of a title, or a file.",),
    )
    made.add_argument("session", metavar="SESSION", nargs="?", default="last", help="which one; the last, if not given")
    made.add_argument("--speed", metavar="N", default="1", help="how many times as fast as it was, such as 0.5 or 4")
    made.add_settings(("dashboard",))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Play it until the user leaves."""
    speed = speed_of(arguments.speed)

    def show() -> int:
        from homeai.app.replaying import run_replay
        from homeai.session.replay import Replay

        return run_replay(settings_of(arguments), Replay(record_of(arguments.session), speed=speed))

    return on_screen(show)


def speed_of(text: str) -> float:
    """The number that is meant; raises `UsageError` where it is none."""
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not isfinite(speed) or not 0 < speed <= FASTEST:
        raise UsageError(f'--speed takes a number above 0, at most {FASTEST:,.0f}, not "{text}".', code="usage")
    return speed
