"""A conversation behind a command line, in this process."""

from __future__ import annotations

import argparse

import pytest

from homeai.cli.answering import Conversation, settings_and_model
from homeai.cli.signals import Signals
from homeai.events import LoadEnded, Sample
from tests.cli.conftest import Homeai, until


def test_readings_do_not_pile_up_while_nobody_asks(homeai: Homeai, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOMEAI_STATE_DIR", "HOMEAI_CONFIG_DIR", "HOMEAI_BACKEND"):
        monkeypatch.setenv(name, homeai.environment[name])
    with Conversation(*settings_and_model(argparse.Namespace()), Signals()) as idle:
        until(lambda: idle.session.state.load.resident, "the model")
        until(lambda: len(idle.session.state.probes["cpu"].history) > 2, "three readings")
        waiting = [idle._inbox.get() for _ in range(idle._inbox.qsize())]
    kinds = {type(fact) for fact in waiting}
    assert LoadEnded in kinds
    assert Sample not in kinds
