"""Measures what this machine can do with the model, after saying what that means for the chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from homeai.app.list_screen import wrapped
from homeai.app.measuring import Found
from homeai.errors import HomeaiError
from widgets import charts
from widgets.figures import ACCENT, MUTED, STRONG
from widgets.foreign import on_one_line
from widgets.lines import Lines

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

TICK_S = 0.2

_WHAT = (
    "{model} computes 1 to 512 tokens at once, writes a little, and memory is read as fast as it goes, for about 25 s. "
    "From then on answers are compared with what this machine can do. Other programs should rest."
)
_MEANWHILE = (
    "Meanwhile the model is put away, so that nothing shares memory and processor with the measurement, and nothing "
    "can be asked. Afterwards it is loaded again, and each chat is read once more with its next question."
)


class MeasureScreen(ModalScreen[None]):
    """A box over the chat: it asks first, shows how far it is, and says what came of it."""

    COMMAND: ClassVar[str] = "calibrate"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", priority=True),
        Binding("enter", "go", "Measure", priority=True),
    ]
    app: HomeaiApp

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def compose(self) -> ComposeResult:
        """The box."""
        with VerticalScroll(id="measure", can_focus=False):
            yield Lines(id="measure-lines")

    def on_mount(self) -> None:
        """Follow what happens."""
        self.set_interval(TICK_S, self._draw)
        self.call_after_refresh(self._draw)

    def on_resize(self, _event: events.Resize) -> None:
        """Fit everything to the new size."""
        self.call_after_refresh(self._draw)

    def action_go(self) -> None:
        """Begin; once it is over, go back."""
        if not self._begun or self._refused:
            self._begun = True
            self.app.measuring.begin()
            self._draw()
        elif not self.app.measuring.state:
            self.dismiss()

    def action_leave(self) -> None:
        """Stop what runs, else go back."""
        if self.app.measuring.state:
            self.app.measuring.stop()
            self._draw()
        else:
            self.dismiss()

    @property
    def _refused(self) -> bool:
        """Whether it was measured, but for nothing."""
        outcome = self.app.measuring.outcome
        return isinstance(outcome, Found) and not outcome.kept

    def _draw(self) -> None:
        # None where it is taken down already.
        lines = next(iter(self.query("#measure-lines").results(Lines)), None)
        width = 0 if lines is None else lines.content_size.width
        if lines is not None and width > 0:
            title = Content.styled("Measure this machine", f"{STRONG} {ACCENT}")
            lines.show([title, Content(""), *self._lines(width), Content(""), self._keys()])

    def _lines(self, width: int) -> list[Content]:
        measuring = self.app.measuring
        match measuring.state:
            case "waits":
                session = self.app.session
                loads = session is not None and session.state.load.loading is not None
                what = "Waiting until the model is loaded" if loads else "Stopping what is being written"
                return [Content(f"{what} …")]
            case "stops":
                return [Content("Stopping …")]
            case "runs":
                progress = measuring.progress
                if progress is None:
                    return [Content("Putting the model away …")]
                return [
                    Content(progress.words).truncate(width, ellipsis=True),
                    Content.styled(charts.meter(progress.done, min(60, width)), ACCENT),
                ]
        if self._begun and measuring.outcome is not None:
            return _outcome(measuring.outcome, width)
        return self._question(width)

    def _question(self, width: int) -> list[Content]:
        session, running = self.app.session, len(self.app.desk.live)
        name = "The model" if session is None or session.model is None else session.model.name
        lines = [*wrapped(_WHAT.format(model=on_one_line(name)), width), Content(""), *wrapped(_MEANWHILE, width)]
        if running:
            words = "An answer is being written" if running == 1 else f"{running} answers are being written"
            which = "it" if running == 1 else "them"
            told = wrapped(f"! {words}: Enter stops {which}. What is there by then stays.", width)
            lines += [Content(""), *(line.stylize(f"{STRONG} $warning") for line in told)]
        return lines

    def _keys(self) -> Content:
        measuring = self.app.measuring
        if measuring.state:
            keys = [] if measuring.state == "stops" else [("Esc", "stop")]
        else:
            again = [("Enter", "measure again")] if self._refused else []
            keys = [*again, ("Esc", "back")] if self._begun else [("Enter", "measure"), ("Esc", "back")]
        line = Content("")
        for key, what in keys:
            line += Content.assemble("  " if line else "", (key, STRONG), (f" {what}", MUTED))
        return line


def _outcome(outcome: Found | HomeaiError, width: int) -> list[Content]:
    if isinstance(outcome, HomeaiError):
        sign = "" if outcome.code == "cancelled" else "✗ "
        return wrapped(on_one_line(f"{sign}{outcome.message} {outcome.help}".rstrip()), width)
    lines = [line for words in outcome.words for line in wrapped(f"· {words}", width)]
    for words in outcome.warnings:
        lines += [line.stylize(f"{STRONG} $warning") for line in wrapped(f"! {words}", width)]
    if not outcome.kept:
        return lines
    return [*lines, Content(""), *wrapped("Answers of this model are compared with this from now on.", width)]


def turn_measuring(app: HomeaiApp) -> None:
    """Open the box, or stop what runs in it, or close it."""
    if isinstance(app.screen, MeasureScreen):
        app.screen.action_leave()
    elif app.session is None or app.session.model is None:
        app.notify(f"There is no model to measure with. {app.choosing.way_out}", timeout=4, markup=False)
    elif app.session.state.load.loading is not None:
        app.notify("The model is still being loaded. Measure when it is there.", timeout=4)
    else:
        app.push_screen(MeasureScreen())
