"""The vocabulary of facts: what happened, where it happened, stamped when it happened.

Every figure on a screen, in a file or in a sentence is derived from these by pure functions. A fact is frozen, tagged
by `kind` and encodes to one JSON object. Rules of the vocabulary:

- Fields that end in `at_ns` are stamps of `homeai.clock.now_ns`, in the session's clock (a worker's stamps are shifted
  by the offset of its hello when they arrive); every other `*_ns` is a span. The suffix is what `shift` goes by.
- A quantity that was not measured is `None`, never 0.
- New fields get defaults, so that an old record still reads; the meaning of a field never changes under its name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from homeai.events.answers import TOKEN_COLUMNS as TOKEN_COLUMNS
from homeai.events.answers import AnswerFact as AnswerFact
from homeai.events.answers import Began as Began
from homeai.events.answers import Channel as Channel
from homeai.events.answers import ChunkProgress as ChunkProgress
from homeai.events.answers import Divergence as Divergence
from homeai.events.answers import Ended as Ended
from homeai.events.answers import Expected as Expected
from homeai.events.answers import FinishReason as FinishReason
from homeai.events.answers import Message as Message
from homeai.events.answers import Parts as Parts
from homeai.events.answers import Prefilled as Prefilled
from homeai.events.answers import Queued as Queued
from homeai.events.answers import Sampler as Sampler
from homeai.events.answers import SlowStep as SlowStep
from homeai.events.answers import StopRequested as StopRequested
from homeai.events.answers import Submitted as Submitted
from homeai.events.answers import Templated as Templated
from homeai.events.answers import Text as Text
from homeai.events.answers import Tokenised as Tokenised
from homeai.events.answers import Tokens as Tokens
from homeai.events.answers import WorkFact as WorkFact
from homeai.events.base import Fact as Fact
from homeai.events.base import Fault as Fault
from homeai.events.base import Part as Part
from homeai.events.engine import Attention as Attention
from homeai.events.engine import Device as Device
from homeai.events.engine import EngineEnded as EngineEnded
from homeai.events.engine import EngineFact as EngineFact
from homeai.events.engine import EngineFacts as EngineFacts
from homeai.events.engine import EngineReady as EngineReady
from homeai.events.engine import EngineStarting as EngineStarting
from homeai.events.engine import LoadEnded as LoadEnded
from homeai.events.engine import LoadFact as LoadFact
from homeai.events.engine import LoadFailed as LoadFailed
from homeai.events.engine import LoadProgress as LoadProgress
from homeai.events.engine import LoadStage as LoadStage
from homeai.events.engine import LoadStarted as LoadStarted
from homeai.events.engine import ModelFacts as ModelFacts
from homeai.events.engine import ModelShape as ModelShape
from homeai.events.engine import PageCache as PageCache
from homeai.events.engine import Placement as Placement
from homeai.events.machine import Calibrated as Calibrated
from homeai.events.machine import Ceilings as Ceilings
from homeai.events.machine import MachineFact as MachineFact
from homeai.events.machine import Measured as Measured
from homeai.events.machine import Sample as Sample
from homeai.events.machine import Step as Step
from homeai.events.session import SCHEMA as SCHEMA
from homeai.events.session import Notice as Notice
from homeai.events.session import Renamed as Renamed
from homeai.events.session import SessionFact as SessionFact
from homeai.events.session import SessionStarted as SessionStarted
from homeai.events.session import Words as Words

AnyFact = SessionFact | EngineFact | LoadFact | AnswerFact | MachineFact


def shift(fact: AnyFact, offset_ns: int) -> AnyFact:
    """Return the fact with every stamp (`*at_ns`) moved by `offset_ns`; spans stay as they are."""
    if offset_ns == 0:
        return fact
    moved: dict[str, Any] = {}
    for name in fact.__struct_fields__:
        if name.endswith("at_ns"):
            stamp = getattr(fact, name)
            moved[name] = tuple(s + offset_ns for s in stamp) if isinstance(stamp, tuple) else stamp + offset_ns
    return msgspec.structs.replace(fact, **moved)
