"""F4: how the model should behave in this chat, and how it chooses its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from homeai import units
from homeai.app.commands import Keys
from homeai.app.fitting import Fit, context_now, use_context, with_context
from homeai.events import Sampler
from homeai.settings import BY_KEY
from widgets.choice_line import ChoiceLine
from widgets.figures import MUTED
from widgets.foreign import on_one_line, shown
from widgets.line_box import LineBox
from widgets.text_box import TextBox

if TYPE_CHECKING:
    from textual.events import DescendantBlur, DescendantFocus

    from homeai.app.app import HomeaiApp
    from homeai.app.desk import OpenChat


@dataclass(frozen=True, slots=True)
class _Field:
    """One line of the form; its key is a setting's and a sampler's, `stop` apart, which is no setting."""

    key: str
    label: str
    explained: str

    def read(self, text: str) -> Any:
        """The value; raises `ValueError` with what is taken, in the words of the command line."""
        if self.key == "stop":
            return stop_texts(text)
        return BY_KEY[self.key].kind.from_text(text.strip() or self._when_empty)

    def show(self, sampler: Sampler) -> str:
        """The value as `read` takes it."""
        value = getattr(sampler, self.key)
        return stop_line(value) if self.key == "stop" else BY_KEY[self.key].kind.show(value)

    @property
    def _when_empty(self) -> str:
        return {"seed": "random", "max_tokens": "unlimited"}.get(self.key, "")


FIELDS = (
    _Field("temperature", "temperature", "how freely words are chosen; 0 not at all"),
    _Field("top_k", "top-k", "among the so many likeliest; 0 is all"),
    _Field("top_p", "top-p", "among the likeliest of this joint share"),
    _Field("min_p", "min-p", "none below this share of the likeliest"),
    _Field("repeat_penalty", "repeat penalty", "above 1 it repeats itself less; 1 is off"),
    _Field("seed", "seed", "the same number gives the same answer"),
    _Field("max_tokens", "most tokens", "where an answer ends at the latest"),
    _Field("stop", "stop texts", "ends before these; | between"),
)

_CHOOSING = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty")
_USUAL = {key: BY_KEY[key].default for key in _CHOOSING}
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "exact": _USUAL | {"temperature": 0.0},
        "usual": _USUAL,
        # With the usual limits the starter model still writes sentences at 1.2; without them words of no meaning.
        "lively": _USUAL | {"temperature": 1.2},
    }
)
"""Ways to choose words that have a name. `exact` gives the same answer each time."""


class ChatSettingsScreen(ModalScreen[None]):
    """A form over the chat; nothing changes before it is kept.

    Args:
        keys: Which keys the commands have.
        chat: Whose settings they are.
    """

    COMMAND: ClassVar[str] = "chat_settings"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", priority=True),
        Binding("ctrl+s", "keep", "Keep", priority=True),
        Binding("down", "app.focus_next", "Next", show=False),
        Binding("up", "app.focus_previous", "Previous", show=False),
    ]
    app: HomeaiApp

    def __init__(self, keys: Keys, chat: OpenChat) -> None:
        super().__init__()
        self._keys = keys
        self._chat = chat
        self._sure = False
        """Esc was pressed once on something changed."""

    def compose(self) -> ComposeResult:
        """The form."""
        chat = self._chat
        with VerticalScroll(id="settings", can_focus=False):
            yield Static(Content.styled("Settings of this chat", "bold $primary"))
            yield Static(self._system_words(), id="settings-system-words")
            yield TextBox(shown(chat.system or ""), "for example: Answer briefly and plainly.", id="settings-system")
            yield self._row("words", "preset", ChoiceLine(tuple(PRESETS), _preset(chat.sampler), id="settings-preset"))
            for field in FIELDS:
                box = LineBox(field.show(chat.sampler), id=f"settings-{field.key}")
                yield self._row(field.key, field.label, box)
            scopes = ("this chat", "this chat and new ones")
            yield self._row("scope", "for", ChoiceLine(scopes, id="settings-scope"))
            if (context := context_now(self.app)) is not None:
                yield self._row("context", "context", LineBox(str(context), id="settings-context"))
            yield Static("", id="settings-said", markup=False)
            yield Static(id="settings-keys")

    def _row(self, key: str, label: str, box: LineBox | ChoiceLine) -> Horizontal:
        told = Static("", id=f"settings-{key}-told", classes="told", markup=False)
        return Horizontal(Static(f"  {label}", classes="label", markup=False), box, told, classes="row")

    def on_mount(self) -> None:
        """Explain every field, and begin with the text."""
        # What the form shows of what it was opened with: a value is changed when it differs from that.
        self._before = self._texts()
        for field in FIELDS:
            self._explain(field)
        self._explain_context()
        self.query_one(TextBox).focus()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _texts(self) -> dict[str, str]:
        texts = {field.key: self._box(field).value for field in FIELDS}
        for box in self.query("#settings-context").results(LineBox):
            texts["context"] = box.value
        return {**texts, "system": self.query_one(TextBox).text}

    def _box(self, field: _Field) -> LineBox:
        return self.query_one(f"#settings-{field.key}", LineBox)

    def _changed(self) -> list[str]:
        """What differs from what it was, in the form's words."""
        now = self._texts()
        names = {"system": "the text for the model", "context": "the context"}
        names |= {field.key: field.label for field in FIELDS}
        return [names[key] for key in names if now.get(key) != self._before.get(key)]

    def _read(self) -> dict[str, Any] | None:
        """The changed values by key; None where one cannot be, with the cursor in the first of these.

        What was not touched is not read: the form may show it otherwise than it is, with stand-ins for controls.
        """
        values: dict[str, Any] = {}
        wrong: list[_Field] = []
        for field in FIELDS:
            if self._box(field).value == self._before[field.key]:
                continue
            try:
                values[field.key] = field.read(self._box(field).value)
            except ValueError:
                wrong.append(field)
        if wrong:
            self._box(wrong[0]).focus()
            return None
        return values

    # --- leaving ------------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Go back; where something was changed, say so first."""
        if self._sure or not (changed := self._changed()):
            self.dismiss()
            return
        self._sure = True
        self._say(f"You changed {_listed(changed)}. Esc again forgets that, Ctrl+S keeps it.")

    @on(LineBox.Submitted)
    def action_keep(self) -> None:
        """Keep what the form says and go back; or say what cannot be."""
        values = self._read()
        if values is None:
            self._say("✗ Something here cannot be: the field with the cursor says what it takes.")
            return
        context = self._texts().get("context")
        context = None if context == self._before.get("context") else context
        if context is not None and isinstance(problem := with_context(self.app, context), str):
            self._say(f"✗ {problem}")
            self.query_one("#settings-context").focus()
            return
        sampler = replace(self._chat.sampler, **values)
        text = self.query_one(TextBox).text
        system = self._chat.system if text == self._before["system"] else text.strip() or None
        if self.query_one("#settings-scope", ChoiceLine).taken == 1:
            keep_for_new(self.app, system, sampler)
        keep(self.app, self._chat, system, sampler)
        self.dismiss()
        if context is not None:
            use_context(self.app, context)

    # --- telling ------------------------------------------------------------------------------------------------------

    @on(LineBox.Changed)
    def _hear_line(self, message: LineBox.Changed) -> None:
        self._sure = False
        self._say("")
        for field in FIELDS:
            if message.input.id == f"settings-{field.key}":
                self._explain(field)
        if message.input.id == "settings-context":
            self._explain_context()
            if message.input.value != self._before["context"]:
                self._say("The context is that of all chats: the model is loaded again with another one.")
        self.query_one("#settings-preset", ChoiceLine).take(_preset(self._sampler()))

    @on(TextBox.Changed)
    def _hear_text(self) -> None:
        self._sure = False
        self._say("")
        self.query_one("#settings-system-words", Static).update(self._system_words())

    @on(ChoiceLine.Taken, "#settings-preset")
    def _take_preset(self, message: ChoiceLine.Taken) -> None:
        for key, value in list(PRESETS.values())[message.index].items():
            self.query_one(f"#settings-{key}", LineBox).value = BY_KEY[key].kind.show(value)

    def _sampler(self) -> Sampler | None:
        """What the form says now; None where it cannot be read."""
        try:
            return Sampler(**{key: BY_KEY[key].kind.from_text(self._texts()[key]) for key in _CHOOSING})  # type: ignore[arg-type]
        except ValueError:
            return None

    def _explain(self, field: _Field) -> None:
        told = self.query_one(f"#settings-{field.key}-told", Static)
        try:
            field.read(self._box(field).value)
        except ValueError as problem:
            told.update(Content.assemble(("✗ ", "bold $error"), on_one_line(str(problem))))
        else:
            told.update(Content.styled(field.explained, MUTED))

    def _explain_context(self) -> None:
        for box in self.query("#settings-context").results(LineBox):
            told, found = self.query_one("#settings-context-told", Static), with_context(self.app, box.value)
            if isinstance(found, str):
                told.update(Content.assemble(("✗ ", "bold $error"), on_one_line(found)))
            else:
                needs = f"; {found.brief}" if isinstance(found, Fit) else ""
                told.update(Content.styled(f"tokens{needs}", MUTED))

    def _system_words(self) -> Content:
        words = Content("How should the model behave?")
        chat = self._chat
        if not self.is_mounted or not chat.answer_ids or self.query_one(TextBox).text == (chat.system or ""):
            return words
        newest = chat.ended.get(chat.answer_ids[-1])
        tokens = newest.context_used if newest is not None else None
        cost = "the whole chat" + ("" if tokens is None else f", about {units.count(tokens)} tokens")
        return Content.assemble(words, (f"  The next question reads {cost} again.", MUTED))

    def _say(self, words: str) -> None:
        self.query_one("#settings-said", Static).update(Content(on_one_line(words)))

    def _key_line(self) -> Content:
        in_text, line = isinstance(self.focused, TextBox), Content("")
        keep = "Ctrl+S" if in_text else "Enter, Ctrl+S"
        for key, what in (
            (keep, "keep"),
            *([("Enter", "new line")] if in_text else []),
            ("Tab", "next"),
            ("Left Right", "choose"),
            ("Esc", "back"),
        ):
            line += Content.assemble("  " if line else "", (key, "bold"), (f" {what}", MUTED))
        return line

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Mark the line that the keys go to."""
        self._mark(event.widget, "▸ ")
        for keys in self.query("#settings-keys").results(Static):
            keys.update(self._key_line())

    def on_descendant_blur(self, event: DescendantBlur) -> None:
        """Take the mark away."""
        self._mark(event.widget, "  ")

    def _mark(self, widget: Widget, sign: str) -> None:
        row = widget.parent
        # Nothing where the form is taken down already.
        for label in row.query(".label").results(Static) if isinstance(row, Horizontal) else ():
            label.update(sign + str(label.content)[2:])


def turn_settings(app: HomeaiApp) -> None:
    """Open the form, or leave it where it is open."""
    if isinstance(app.screen, ChatSettingsScreen):
        app.screen.action_leave()
    else:
        app.push_screen(ChatSettingsScreen(app.keys, app.desk.current))


def keep(app: HomeaiApp, chat: OpenChat, system: str | None, sampler: Sampler) -> None:
    """Give a chat these settings, from its next question on, and say what that means."""
    text_changed, changed = system != chat.system, sampler != chat.sampler
    chat.system, chat.sampler = system, sampler
    if text_changed and chat.chat is not None and app.session is not None:
        app.session.set_system(chat.chat, system)
    if text_changed and not chat.is_blank:
        app.chat_screen.talk(chat.number).remark(
            "The model gets the new text on how to behave with the next question, and reads the whole chat again then."
        )
    elif text_changed or changed:
        app.notify("These settings hold from the next question on.", timeout=4)


def keep_for_new(app: HomeaiApp, system: str | None, sampler: Sampler) -> None:
    """Make these the settings that new chats begin with, as long as the program runs; those without a word included."""
    app.desk.system, app.desk.sampler = system, sampler
    for chat in app.desk:
        if chat.is_blank:
            chat.system, chat.sampler = system, sampler


def stop_texts(line: str) -> tuple[str, ...]:
    r"""The texts of a line with `|` between them, in which `\n` is a line break."""
    return tuple(part.strip(" ").replace("\\n", "\n") for part in line.split("|") if part.strip(" "))


def stop_line(texts: tuple[str, ...]) -> str:
    """The same as a line."""
    return " | ".join(text.replace("\n", "\\n") for text in texts)


def _preset(sampler: Sampler | None) -> int | None:
    """Index of the preset that a sampler chooses words by; None where it is none."""
    if sampler is None:
        return None
    own = {key: getattr(sampler, key) for key in _CHOOSING}
    return next((index for index, preset in enumerate(PRESETS.values()) if preset == own), None)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
