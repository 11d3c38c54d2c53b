"""Chat messages into the text that the model was trained on, by the template that its file carries.

Models differ in what they accept. What a template cannot take is found once, by trying it at load, and the messages
are then changed as little as needed: a system text goes before the user message it precedes, consecutive messages of
one role are joined, a chat that the assistant begins gets an empty user message in front. Every change is told in a
`Note`. A template that is missing, does not compile or fails is replaced by a named fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from homeai.engine.llamacpp.layout import Layout, StandIns
from homeai.engine.llamacpp.sandbox import BadTemplateError, JinjaTemplate
from homeai.engine.llamacpp.turns import LENIENT, STRICT, Habits, Note, Turn, adapt, turns_of
from homeai.events import Message

CHATML = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""

PLAIN = """\
{%- for message in messages -%}
{%- if message['role'] == 'system' -%}
{{ message['content'] + '\\n\\n' }}
{%- elif message['role'] == 'user' -%}
{{ '### User:\\n' + message['content'] + '\\n\\n' }}
{%- else -%}
{{ '### Assistant:\\n' + message['content'] + eos_token + '\\n\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '### Assistant:\\n' }}{%- endif -%}
"""

PLAIN_STOPS = ("\n### User:",)
"""Without control tokens only the text itself can tell that a model goes on to write the user's next turn."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A chat as one text."""

    layout: Layout
    """What the template wrote; without spans when `transformed`."""
    turns: tuple[Turn, ...]
    template: str
    """Which template wrote it: `model`, `chatml` or `plain`."""
    transformed: bool = False
    """The template changed some message's words, so that nobody knows where they are."""
    verbatim: Layout | None = None
    """When `transformed`: the same with every word as it was given, if the template can be made to show that."""
    notes: tuple[Note, ...] = ()

    @property
    def text(self) -> str:
        """What the template wrote."""
        return self.layout.text

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings that this prompt needs besides the user's."""
        return PLAIN_STOPS if self.template == "plain" else ()


@dataclass(frozen=True, slots=True)
class _Form:
    """A compiled template and how it wants to be called."""

    name: str
    jinja: JinjaTemplate
    bos: str
    eos: str
    habits: Habits = LENIENT
    parts: bool = False
    """It reads each content as a list of typed parts."""
    tools: bool = True
    """It wants `tools` to be there, as None; a few ask only whether the name is defined, and then loop over it."""

    def write(self, turns: Sequence[Turn], now: datetime, *, add_generation_prompt: bool = True) -> str:
        """Return the text; raises `BadTemplateError`."""
        variables: dict[str, object] = {
            "messages": [
                {"role": turn.role, "content": [{"type": "text", "text": turn.content}] if self.parts else turn.content}
                for turn in turns
            ],
            "add_generation_prompt": add_generation_prompt,
            "bos_token": self.bos,
            "eos_token": self.eos,
            "strftime_now": now.strftime,
        }
        if self.tools:
            variables["tools"] = None
        return self.jinja.render(variables, input_length=sum(len(turn.content) for turn in turns))


class ChatTemplate:
    """A template that always gives a text: the model's own, or a fallback. Made by `compile_template`."""

    def __init__(self, own: _Form, spare: _Form, notes: tuple[Note, ...], now: Callable[[], datetime]) -> None:
        self._own = own
        self._spare = spare
        self._now = now
        self.name = own.name
        """`model`, `chatml` or `plain`."""
        self.notes = notes
        """Why it is not the model's own; empty when it is."""

    def render(self, messages: Iterable[Message], *, add_generation_prompt: bool = True) -> Rendered:
        """Return the chat as one text, for the assistant to go on; whatever the model's template does, it returns."""
        turns = turns_of(messages)
        # One date for both renderings of a chat, also at midnight.
        now = self._now()
        failure = ""
        incomplete: Rendered | None = None
        for habits in dict.fromkeys((self._own.habits, STRICT)):
            adapted, notes = adapt(turns, habits)
            try:
                rendered, left_out = _render(self._own, adapted, now, add_generation_prompt)
            except BadTemplateError as problem:
                failure = failure or str(problem)
                continue
            if not left_out:
                return replace(rendered, notes=notes)
            incomplete = incomplete or replace(rendered, notes=(*notes, _LEFT_OUT))
        if incomplete is not None:
            return incomplete
        told = _not_used("template_failed", "fails on this chat", failure, self._spare.name)
        rendered, _ = _render(self._spare, turns, now, add_generation_prompt)
        return replace(rendered, notes=(told,))


def compile_template(
    source: str | None, *, bos: str, eos: str, chatml: bool, now: Callable[[], datetime] = datetime.now
) -> ChatTemplate:
    """Compile a model's template and try what it accepts; never raises.

    `bos` and `eos` are the spellings of those tokens, `""` for none; `chatml` says whether the vocabulary has the
    tokens of the ChatML format, which then is the fallback (else `plain`). `now` gives templates their date.
    """
    spare = _Form("chatml" if chatml else "plain", JinjaTemplate(CHATML if chatml else PLAIN), bos, eos)
    if not source or not source.strip():
        note = Note(
            "template_missing",
            f"This model's file carries no chat template; {_LONG_NAMES[spare.name]} is used.",
            "If the answers look wrong, use a file of this model that carries its template (an instruct or chat one).",
        )
        return ChatTemplate(spare, spare, (note,), now)
    try:
        own = _try_out(_Form("model", JinjaTemplate(source), bos, eos), now())
    except BadTemplateError as problem:
        note = _not_used("template_broken", "cannot be used", str(problem), spare.name)
        return ChatTemplate(spare, spare, (note,), now)
    return ChatTemplate(own, spare, (), now)


_LONG_NAMES = {"chatml": "the ChatML format", "plain": "a plain User/Assistant format"}

_LEFT_OUT = Note("message_left_out", "This model's chat template leaves a message of this chat out.")


def _not_used(code: str, what: str, reason: str, spare: str) -> Note:
    return Note(
        code,
        f"This model's chat template {what} ({reason}); {_LONG_NAMES[spare]} is used instead.",
        "If the answers look wrong, use a newer file of this model.",
    )


def _try_out(form: _Form, now: datetime) -> _Form:
    """Find out how the template wants to be called and what it accepts; raises `BadTemplateError` if nothing works."""
    user, other, system, answer = (
        Turn(role, f"qxprobe{index}") for index, role in enumerate(("user", "user", "system", "assistant"))
    )
    failure = ""
    for parts, tools in ((False, True), (False, False), (True, True), (True, False)):
        called = replace(form, parts=parts, tools=tools)
        try:
            if user.content in called.write([user], now):
                break
        except BadTemplateError as problem:
            failure = failure or str(problem)
    else:
        raise BadTemplateError(failure or "it leaves out what the user says")

    def takes(*turns: Turn) -> bool:
        try:
            text = called.write(turns, now)
        except BadTemplateError:
            return False
        return all(turn.content in text for turn in turns)

    habits = Habits(system=takes(system, user), repeats=takes(user, other), assistant_first=takes(answer, user))
    return replace(called, habits=habits)


def _render(form: _Form, turns: Sequence[Turn], now: datetime, add_generation_prompt: bool) -> tuple[Rendered, bool]:
    """Render and locate the words; the flag says that a message is missing from the text."""
    text = form.write(turns, now, add_generation_prompt=add_generation_prompt)
    unlocated = Rendered(Layout(text, ()), tuple(turns), form.name, transformed=True)
    stand_ins = StandIns(turns)
    try:
        frame = stand_ins.frame(form.write(stand_ins.turns, now, add_generation_prompt=add_generation_prompt))
    except BadTemplateError:
        return unlocated, False
    layout = frame.locate(text)
    if layout is None:
        return replace(unlocated, verbatim=frame.fill()), frame.left_out
    return replace(unlocated, layout=layout, transformed=False), frame.left_out
