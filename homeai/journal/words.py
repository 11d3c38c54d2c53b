"""A record without words: what was asked and answered is left out, counts and times stay.

Left out are prompts, answers, reasoning, system texts, stop strings, token ids (which are words to anybody who has the
model), what an engine printed, and the sentences of notices and failures, which may quote any of these or name files.
A model's path is reduced to its file name. Kept are names of models and devices, codes, numbers, stamps, and a title
that the user gave. Figures do not change: a piece of text still says that it was seen, and how long it was.
"""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Calibrated,
    Ended,
    EngineEnded,
    Fault,
    LoadEnded,
    LoadFailed,
    LoadStarted,
    Notice,
    SessionStarted,
    Submitted,
    Text,
    Tokens,
)

NOT_RECORDED = "(not recorded)"
LEFT_OUT = "(left out)"
"""Stand where a sentence for people has to stand: in a record without words, and where they were taken out later."""

NO_ID = -1
"""Stands for a token whose id was left out."""


def without_words(fact: AnyFact, instead: str = NOT_RECORDED) -> AnyFact:
    """Return the fact as it goes into a record without words; `instead` stands for a sentence."""
    match fact:
        case Text():
            return replace(fact, text="", withheld=fact.withheld or sum(not sign.isspace() for sign in fact.text))
        case Tokens():
            return replace(fact, ids=(NO_ID,) * len(fact.ids))
        case Submitted():
            return _wordless(fact)
        case SessionStarted():
            return replace(fact, record="no-text")
        case Notice():
            return replace(fact, message=_instead(fact.message, instead), help="")
        case LoadStarted() | Calibrated():
            return replace(fact, path=_file_name(fact.path))
        case LoadEnded():
            return replace(fact, model=replace(fact.model, path=_file_name(fact.model.path)))
        case LoadFailed():
            return replace(fact, fault=_coded(fact.fault, instead))
        case EngineEnded():
            return replace(fact, fault=_coded_or_none(fact.fault, instead), stderr_tail="")
        case Ended():
            return replace(fact, fault=_coded_or_none(fact.fault, instead))
        case _:
            return fact


def _wordless(fact: Submitted) -> Submitted:
    return replace(
        fact,
        prompt="",
        system=None if fact.system is None else "",
        sampler=replace(fact.sampler, stop=("",) * len(fact.sampler.stop)),
    )


def _coded(fault: Fault, instead: str) -> Fault:
    return Fault(code=fault.code, message=_instead(fault.message, instead), detail=fault.detail)


def _coded_or_none(fault: Fault | None, instead: str) -> Fault | None:
    return None if fault is None else _coded(fault, instead)


def _instead(message: str, instead: str) -> str:
    # What was not there before was not left out now.
    return message if message == NOT_RECORDED else instead


def _file_name(path: str) -> str:
    # Of a path of another system as well: the record may have been made there.
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
