"""From the messages of a request to the tokens of its prompt, each step timed, with what should be told on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeai.clock import now_ns
from homeai.engine.backend import Emit
from homeai.engine.llamacpp.native import Model
from homeai.engine.llamacpp.prompt import PromptBuilder, knows_chatml
from homeai.engine.llamacpp.reasoning import markers, starts_open
from homeai.engine.llamacpp.stream import AnswerText
from homeai.engine.llamacpp.template import compile_template
from homeai.engine.llamacpp.turns import Note
from homeai.engine.llamacpp.written import Written, WrittenAnswers
from homeai.engine.wire import Ask
from homeai.events import Notice, Templated

REMEMBERED_TOKENS = 131_072
"""Tokens of answers kept for the next prompts: four contexts of 32,768, about 10 MB; those of a chat that goes on stay
in any case. Older ones are tokenised from their text again."""


@dataclass(frozen=True, slots=True)
class MadePrompt:
    """A prompt ready to be read, and the splitter for the text that will answer it."""

    ids: list[int]
    templated: Templated
    text: AnswerText


class PromptMaker:
    """Applies one model's chat template and vocabulary."""

    def __init__(self, model: Model, emit: Emit) -> None:
        vocabulary = model.vocabulary
        self._vocabulary = vocabulary
        self._emit = emit
        self._markers = markers(vocabulary)
        self._template = compile_template(
            model.template,
            bos=vocabulary.text(vocabulary.bos),
            eos=vocabulary.text(vocabulary.eos),
            chatml=knows_chatml(vocabulary),
        )
        self._builder = PromptBuilder(vocabulary)
        self._written = WrittenAnswers(REMEMBERED_TOKENS)
        self._told: set[str] = set()
        for note in self._template.notes:
            self._tell(note, None)

    @property
    def template_name(self) -> str:
        """`model`, or the name of the fallback."""
        return self._template.name

    def remember(self, answer_id: int, ids: Sequence[int]) -> None:
        """Keep the tokens an answer was written in, so that its chat's next prompt finds them in the cache."""
        self._written.add(answer_id, Written.of(ids, self._vocabulary))

    def piece(self, token: int) -> bytes:
        """The bytes a sampled token adds to the text; reasoning marks count even where they are control tokens."""
        return self._markers.get(token) or self._vocabulary.piece(token, special=False)

    def make(self, request: Ask) -> MadePrompt:
        """Render and tokenise; whatever the template does, there is a prompt."""
        began_at_ns = now_ns()
        rendered = self._template.render(request.messages)
        templated = Templated(
            at_ns=now_ns(), answer_id=request.answer_id, started_at_ns=began_at_ns, template=rendered.template
        )
        named = [message.answer_id for message in request.messages if message.answer_id is not None]
        prompt = self._builder.build(rendered, self._written.of(named))
        for note in prompt.notes:
            self._tell(note, request.answer_id)
        stops = (*request.sampler.stop, *rendered.stops)
        return MadePrompt(ids=prompt.ids, templated=templated, text=AnswerText(stops, opened=starts_open(prompt.text)))

    def _tell(self, note: Note, answer_id: int | None) -> None:
        """Pass a note on, each kind once while the model is loaded: it would be the same every turn."""
        if note.code not in self._told:
            self._told.add(note.code)
            self._emit(
                Notice(at_ns=now_ns(), code=note.code, message=note.message, help=note.help, answer_id=answer_id)
            )
