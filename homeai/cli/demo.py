"""`homeai demo`: a tour of the dashboard with a recorded session, without a model."""

from __future__ import annotations

import argparse
from importlib.resources import as_file, files

from homeai.cli.dashboard import on_screen
from homeai.cli.parser import Parser, settings_of
from homeai.cli.replay import speed_of

SUMMARY = "shows what the dashboard can do with a recorded session, without a model"

TOUR = {
    0: "This is a recorded talk with a small model, played at half its speed. On the right (below, in a small window)"
    " stands where the time goes.",
    1: "The wait for the first token was mostly reading the question: the row prefill. Then the model wrote, token by"
    " token: the row decode. Both add up to the total.",
    2: "The second question read less: what the model still had in memory is the row reused.",
    3: "This answer was stopped with Esc. What was written stays, and so do its figures.",
}
"""What to say at the beginning, and after each answer of the record."""


def parser() -> Parser:
    """The command's arguments."""
    made = Parser("homeai demo", SUMMARY, usage="[flags]", examples=("homeai demo", "homeai demo --speed 2"))
    made.add_argument("--speed", metavar="N", default="0.5", help="how many times as fast as it was; 0.5 if not given")
    made.add_settings(("dashboard",))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Play it until the user leaves."""
    speed = speed_of(arguments.speed)

    def show() -> int:
        from homeai.app.replaying import run_replay
        from homeai.session.replay import Replay

        with as_file(files("homeai") / "demo.jsonl") as path:
            return run_replay(settings_of(arguments), Replay(path, speed=speed), TOUR)

    return on_screen(show)
