"""The application: keys and facts come in, the session is told what to do, the screen is shown what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from textual import events, on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingsMap
from textual.command import CommandPalette
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import OptionList

from homeai.app import asking, clipboard, commands, pasting, slash
from homeai.app.bridge import Inbox, OpenSession, OpenWith, SessionLike, SessionOpened, SessionRefused, pressed_at
from homeai.app.chat_screen import REPLAY_WELCOME, ChatScreen, welcome
from homeai.app.choosing import Choosing
from homeai.app.commands import BY_ID, COMMANDS, Command, Keys, Situation
from homeai.app.desk import Desk
from homeai.app.explaining import Explaining
from homeai.app.hearing import Hearing
from homeai.app.history import History
from homeai.app.librarian import Librarian, Records
from homeai.app.looking_ahead import LookingAhead
from homeai.app.measuring import Measure, Measuring
from homeai.app.opening import Opening, StartSampling
from homeai.app.picture import frame_of, situation_of, tabs_of
from homeai.app.replaying import Replaying
from homeai.app.themes import dress
from homeai.clock import now_ns
from homeai.errors import HomeaiError
from homeai.events import Sampler
from homeai.metrics.state import SessionState
from homeai.metrics.status import computes_on_every_core
from homeai.places import state_dir
from homeai.platform.jobs import suspend_job
from homeai.targets import USUAL_TARGETS, Targets
from widgets.foreign import on_one_line
from widgets.prompt import Prompt

if TYPE_CHECKING:
    from homeai.app.choosing import OptionsOf
    from homeai.models.shelf import Shelf
    from homeai.session.replay import Replay

LEAST_COLUMNS, LEAST_ROWS = 10, 3
"""Of a window that keys are taken in, and that lists of Textual's own stay open in."""

TICK_S = 0.1
"""Ten pictures a second: text flows, and drawing costs a tenth of what one picture a token would at 100 tokens/s.

Five while the engine computes on every core, whose threads wait for the one that a picture keeps from its core. With
the starter model on two cores it wrote at 0.91 of its speed without a screen with ten, 0.93 with five and 0.96 with
three; but three are seen as jerks, and a token then waits for longer than 0.3 s.
"""


class HomeaiApp(App[int]):
    """The dashboard.

    Args:
        open_session: Finds the model and opens the session; runs on a thread of its own after the first paint.
        sampler: How tokens are chosen.
        system: The system message of new chats.
        keys: Which keys the commands have; None takes those of the table.
        start_sampling: Starts the probes; None measures nothing.
        clock: The clock that figures are worked out for; tests freeze it.
        theme: Name of a theme; None takes our dark one.
        insist: End with the error when the model cannot be opened, because the user named that model.
        shelf: Makes what models are looked for in, for the list of them; None offers no list.
        open_with: Opens the session with a model chosen from it, where no other could be opened.
        options_of: Says how a model is run, to tell beforehand whether it has room; None tells nothing.
        records: What recorded sessions are shown and opened with; None offers none.
        replay: What is played, where it is no session to ask in; `open_session` opens it, and `clock` is its own.
        tour: What to say at the beginning (0) and after each answer of a replay, by its id.
        keep_history: Keep what is typed into the box for later runs, in the state folder.
        ascii_only: Draw with ASCII characters only.
        colourless: Draw without colours; so does `NO_COLOR` in the environment.
        measure: Measures what this machine can do with the model; None offers none of that.
        targets: What feels fast, shown in the charts.
    """

    TITLE = "homeai"
    CSS_PATH = Path(__file__).with_name("homeai.tcss")

    def __init__(
        self,
        open_session: OpenSession,
        *,
        sampler: Sampler,
        system: str | None = None,
        keys: Keys | None = None,
        start_sampling: StartSampling | None = None,
        clock: Callable[[], int] = now_ns,
        theme: str | None = None,
        insist: bool = False,
        shelf: Callable[[], Shelf] | None = None,
        open_with: OpenWith | None = None,
        options_of: OptionsOf | None = None,
        records: Records | None = None,
        replay: Replay | None = None,
        tour: Mapping[int, str] = MappingProxyType({}),
        keep_history: bool = False,
        ascii_only: bool = False,
        colourless: bool = False,
        measure: Measure | None = None,
        targets: Targets = USUAL_TARGETS,
    ) -> None:
        super().__init__()
        pasting.install()
        self.keys = keys or Keys()
        # In place of Textual's own, which cannot be taken away by a settings file.
        self._bindings = BindingsMap(_bindings(self.keys))
        self.desk = Desk(system, sampler)
        self.closing = (0, 0.0)
        """The number of the chat whose closing was asked for once, and until when a second time counts."""
        self.quitting_until_s = 0.0
        """Until when a second press of the key that quits counts."""
        self.session: SessionLike | None = None
        """The open session; None before there is one."""
        self.opening = Opening(self, open_session, start_sampling, insist=insist)
        """Where the session comes from, and what ends it."""
        self._clock = clock
        self.choosing = Choosing(self, shelf, open_with, options_of)
        """Changes of the model."""
        self.explaining = Explaining()
        """Why the answer that is shown takes its time."""
        self.measuring = Measuring(self, measure)
        """What this machine can do."""
        self.targets = targets
        self.records = records
        self.librarian = None if records is None else Librarian(self, records)
        """Looks recorded sessions up; None in a dashboard without."""
        self._looking_ahead = LookingAhead(self)
        self.replaying = None if replay is None else Replaying(self, replay, tour)
        """What is played; None in a dashboard that asks."""
        self._history = History(state_dir) if keep_history else None
        self.hearing = Hearing(self)
        """What the facts say on the screen."""
        self._ticks = 0
        self.has_no_session = False
        """There is none and none will come: it was refused."""
        self.refusal: HomeaiError | None = None
        """Why there is no session, when the user named the model."""
        self.crash: Exception | None = None
        """What ended the application unexpectedly."""
        self.no_color = self.no_color or colourless
        self._unknown_theme = None if dress(self, theme, self._filters, ascii_only=ascii_only) else theme

    # --- the session --------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Show the screen, then open the session behind it."""
        greeting = welcome(self.keys) if self.replaying is None else REPLAY_WELCOME
        self.push_screen(ChatScreen(self.keys, self.desk.current.number, self._submit, slash.complete, greeting))
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self.opening.start)
        self.call_after_refresh(self._load_history)
        if self._unknown_theme is not None:
            names = ", ".join(sorted(self.available_themes))
            self.notify(f"There is no theme {on_one_line(self._unknown_theme)}. There are: {names}.", markup=False)

    def close_session(self) -> None:
        """End the probes, the engine and every thread; safe to call twice, also without a session.

        One after the other. What hangs is waited for, but nothing of it for longer than about five seconds.
        """
        self.measuring.close()
        self.opening.close()
        if self.librarian is not None:
            self.librarian.close()
        if self._history is not None:
            self._history.close()

    @on(SessionOpened)
    def _take_session(self, message: SessionOpened) -> None:
        self.opening.take(message.session)

    @on(SessionRefused)
    def _tell_refusal(self, message: SessionRefused) -> None:
        self.opening.refuse(message.error)

    def tell(self, error: HomeaiError) -> None:
        """Say in a passing note what cannot be, and why."""
        words = on_one_line(f"{error.message} {error.help}")
        self.notify(words, severity="warning", timeout=8, markup=False)

    def notify(self, message: str, **more: Any) -> None:
        """Say something in passing, in the place of what was said before."""
        self.clear_notifications()
        super().notify(message, **more)

    def clear_notifications(self) -> None:
        """Take away what was said in passing, with the empty rows that Textual would leave in its place."""
        super().clear_notifications()
        for screen in self.screen_stack:
            screen.query("ToastHolder").remove()

    # --- the box ------------------------------------------------------------------------------------------------------

    def _submit(self, text: str, pressed_at_s: float) -> None:
        asking.submit(self, text, pressed_at(pressed_at_s, self.at_ns))

    @on(Prompt.Changed, "#prompt")
    def show_hint(self) -> None:
        """Say above the box what is being typed there, where it is no plain question."""
        prompt = self.chat_screen.prompt
        typed = prompt.text if prompt.document.line_count == 1 else ""
        words = slash.hint(typed) or asking.editing_words(self)
        if self.replaying is not None:
            words = self.replaying.line()
        self.chat_screen.hint(words, editing=self.desk.current.editing is not None)
        self._looking_ahead.follow()

    def _load_history(self) -> None:
        if self._history is not None:
            take = self.chat_screen.prompt.remember
            self._history.load(lambda texts: self.call_later(take, texts))

    def keep_in_history(self, text: str) -> None:
        """Keep what was typed for later runs, where the user did not forbid that."""
        if self._history is not None:
            self._history.add(text)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy for Textual's own widgets: the box cuts by it."""
        clipboard.copy(self, text, "", quietly=True)

    def keep_clipping(self, text: str) -> None:
        """Have the box's own key for pasting put this in."""
        self._clipboard = text

    def write_to_terminal(self, sequence: str) -> None:
        """Hand a control sequence to the terminal, between two frames."""
        if self._driver is not None:
            self._driver.write(sequence)

    @on(Prompt.TooLong)
    def _refuse_paste(self, message: Prompt.TooLong) -> None:
        self.notify(
            f"That would make {message.characters:,} characters, more than any model reads. Nothing was pasted.",
            severity="warning",
            timeout=6,
        )

    # --- facts --------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        session = self.session
        if session is None or not self.has_screen:
            return
        self.choosing.go_on()
        self.measuring.go_on()
        self._ticks += 1
        if self.replaying is not None:
            self.replaying.replay.advance()
        elif self._ticks % 2 and computes_on_every_core(session.state):
            return
        if self.waits_for_facts or self.desk.live or session.state.load.loading is not None or self.replaying:
            self._picture(session)

    def catch_up(self) -> None:
        """Take in what came since the last picture: what a key does goes by what the screen is about to show."""
        if self.session is not None and self.has_screen and self.waits_for_facts:
            self._picture(self.session)

    def _picture(self, session: SessionLike) -> None:
        with self.batch_update():
            self.hearing.hear(session, self.hearing.inbox.drain())
            self.redraw()

    def hear_again(self, inbox: Inbox | None = None) -> None:
        """Forget what the facts so far said: others come, into another inbox, or the same from the first on."""
        self.hearing.forget(inbox)
        self.choosing.forget()
        self.explaining = Explaining()

    def redraw(self) -> None:
        """Show the current chat's figures, the alert, the tabs and the keys as they are now."""
        screen, alert = self.chat_screen, self.desk.shown_alert
        state = SessionState() if self.session is None else self.session.state
        if alert is None:
            screen.alert(None)
        else:
            screen.alert(self.choosing.with_way_out(alert.fault), alert.tail)
        screen.show(frame_of(self, state), self.situation(screen), tabs_of(self, state))
        self.show_hint()

    # --- commands -----------------------------------------------------------------------------------------------------

    @property
    def at_ns(self) -> int:
        """Now, by the clock of the figures."""
        return self._clock()

    @property
    def has_screen(self) -> bool:
        """Whether the main screen is there; at the end it goes before the last timers do."""
        return any(isinstance(screen, ChatScreen) for screen in self.screen_stack)

    @property
    def chat_screen(self) -> ChatScreen:
        """The main screen, also while another lies over it."""
        return next(screen for screen in self.screen_stack if isinstance(screen, ChatScreen))

    def situation(self, screen: Screen[Any] | None = None) -> Situation:
        """What the availability of commands depends on, as it is now; on the top screen, if none is given."""
        return situation_of(self, screen or self.screen)

    @property
    def is_loading(self) -> bool:
        """Whether the engine starts or loads a model, and no question waits for it."""
        if self.session is None or self.desk.live or self.desk.current.is_busy:
            return False
        state = self.session.state
        return state.load.loading is not None or state.engine.phase == "starting"

    @property
    def waits_for_facts(self) -> bool:
        """Whether facts came that the screen does not show yet."""
        return bool(self.hearing.inbox)

    async def action_command(self, command_id: str) -> None:
        """Run a command of the table because of its key."""
        run = BY_ID[command_id].run
        if run.startswith("app:"):
            await self._run(run)
        else:
            # The application hears of this key before the box has dealt with those typed before it. In the box's own
            # queue it comes behind them, and before those that follow.
            (self.screen.focused or self.screen).call_later(self._run_in_turn, command_id)

    async def _run_in_turn(self, command_id: str) -> None:
        if not self.screen.is_mounted:
            # A key before this one opened it: first it is built. What is taken away before that fails as it is mounted.
            self.screen.call_later(self._run_in_turn, command_id)
        elif commands.is_available(command_id, self.situation()):
            await self._run(BY_ID[command_id].run)

    def run_command(self, command_id: str) -> None:
        """Run a command of the table because of its name; at once, where it is not one of Textual's own."""
        command = BY_ID[command_id]
        run = command.chosen or command.run
        if run.startswith("app:"):
            self.call_later(self._run, run)
        else:
            self.catch_up()
            commands.function(run)(self)

    async def _run(self, run: str) -> None:
        if run.startswith("app:"):
            await self.run_action(run.removeprefix("app:"))
        else:
            self.catch_up()
            commands.function(run)(self)

    def action_suspend_process(self) -> None:
        """Hand the terminal back to the shell, with everything we started."""
        suspend_job()

    async def on_event(self, event: events.Event) -> None:
        """Take keys only where there is room for what they act on: Textual's lists fail at a page of no lines."""
        if isinstance(event, events.Key) and not _has_room(self.size) and event.key not in self.keys.of("quit"):
            return
        if isinstance(event, events.Key) and event.key in ("pageup", "pagedown") and self._has_list_without_rows:
            return
        if isinstance(event, events.Resize) and not _has_room(event.size):
            while isinstance(self.screen, CommandPalette):
                self.pop_screen()
        if self.replaying is not None and isinstance(event, events.Key):
            self.replaying.take_key(event)
        await super().on_event(event)

    @property
    def _has_list_without_rows(self) -> bool:
        """Whether the list of commands has no room in this window: Textual then knows no row to go a page from."""
        if not isinstance(self.screen, CommandPalette):
            return False
        return any(not each.scrollable_content_region for each in self.screen.query(OptionList))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys to others where our commands mean nothing: pages of help, Ctrl+Z (undo) where no shell waits."""
        if action == "command":
            return commands.may_be_available(str(parameters[0]), self.situation())
        return super().check_action(action, parameters)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette lists: the commands that mean something now, with their keys."""
        now = self.situation(screen)
        for command in COMMANDS:
            if command.run and command.available(now) and command.id != "palette":
                key = self.keys.words(command.id)
                words = f"{command.help[0].upper()}{command.help[1:]}{f'  ({key})' if key else ''}"
                yield SystemCommand(command.name, words, partial(self._run, command.chosen or command.run))

    def _handle_exception(self, error: Exception) -> None:
        """Leave in order; who started us tells of the error once the terminal is restored.

        Textual would print a traceback with the values of all variables, prompts among them.
        """
        self.crash = self.crash or error
        super()._handle_exception(error)
        self._exit_renderables.clear()


def _has_room(size: Size) -> bool:
    return size.width >= LEAST_COLUMNS and size.height >= LEAST_ROWS


def _bindings(keys: Keys) -> list[Binding]:
    """One for each key of each command; before the keys of the box, but Esc belongs to whatever is on top."""

    def binding(command: Command, key: str) -> Binding:
        action = f"command('{command.id}')"
        return Binding(key, action, command.name, show=False, id=command.id, priority=key != "escape")

    return [binding(command, key) for command in COMMANDS if command.run for key in keys.of(command.id)]
