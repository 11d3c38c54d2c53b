"""The application: keys and facts come in, the session is told what to do, the screen is shown what there is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from homeai.app.bridge import (
    Inbox,
    OpenSession,
    SessionLike,
    SessionOpened,
    SessionRefused,
    joined_texts,
    pressed_at,
)
from homeai.app.chat_screen import ChatScreen
from homeai.app.help_screen import HelpScreen
from homeai.app.themes import DARK, LIGHT
from homeai.clock import now_ns
from homeai.errors import HomeaiError
from homeai.events import (
    AnyFact,
    Ended,
    EngineEnded,
    LoadEnded,
    LoadFailed,
    Notice,
    Sampler,
)
from homeai.metrics.view import AnswerView, load_view, view
from homeai.platform.jobs import can_suspend_job, suspend_job
from widgets.figures import closing
from widgets.foreign import on_one_line
from widgets.panels import Frame
from widgets.prompt import Prompt

if TYPE_CHECKING:
    # Comes with the engine's supervisor and the model files: 40 ms that the first paint need not wait for.
    from homeai.session import Chat

TICK_S = 0.1
"""Ten pictures a second: text flows, and drawing costs a tenth of what one picture a token would at 100 tokens/s."""

StartSampling = Callable[[SessionLike], Callable[[], None]]
"""Starts the probes for a session and returns what ends them."""


class HomeaiApp(App[int]):
    """The dashboard.

    Args:
        open_session: Finds the model and opens the session; runs on a thread of its own after the first paint.
        sampler: How tokens are chosen.
        system: The system message of new chats.
        start_sampling: Starts the probes; None measures nothing.
        clock: The clock that figures are worked out for; tests freeze it.
        theme: Name of a theme; None takes our dark one.
        insist: End with the error when the model cannot be opened, because the user named that model.
    """

    TITLE = "homeai"
    CSS_PATH = Path(__file__).with_name("homeai.tcss")
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", show=False),
        Binding("ctrl+c", "copy_or_stop", "Copy or stop", show=False, priority=True),
        Binding("ctrl+n", "new_chat", "New chat", show=False),
        Binding("ctrl+t", "toggle_reasoning", "Show thoughts", show=False),
        Binding("ctrl+z", "suspend_process", "To the shell", show=False, priority=True),
        Binding("f1", "help", "Help", show=False),
        Binding("pageup", "scroll(-1)", "Scroll up", show=False, priority=True),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False, priority=True),
    ]

    def __init__(
        self,
        open_session: OpenSession,
        *,
        sampler: Sampler,
        system: str | None = None,
        start_sampling: StartSampling | None = None,
        clock: Callable[[], int] = now_ns,
        theme: str | None = None,
        insist: bool = False,
    ) -> None:
        super().__init__()
        self._open_session = open_session
        self._sampler = sampler
        self._system = system
        self._start_sampling = start_sampling
        self._stop_sampling: Callable[[], None] | None = None
        self._clock = clock
        self._insist = insist
        self._inbox = Inbox()
        self._session: SessionLike | None = None
        self._opener: threading.Thread | None = None
        self._chat: Chat | None = None
        self._answer_id: int | None = None
        self._ended_view: AnswerView | None = None
        """The view of the newest answer once it ended: it does not change any more."""
        self._waiting: tuple[str, int] | None = None
        """A question asked before the session was there, with the stamp of its Enter key."""
        self._told: set[tuple[str, str]] = set()
        """Notices shown so far; each is said once."""
        self._engine_words = ""
        self._has_no_session = False
        """There is none and none will come: it was refused."""
        self.refusal: HomeaiError | None = None
        """Why there is no session, when the user named the model."""
        self.crash: Exception | None = None
        """What ended the application unexpectedly."""
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self._unknown_theme = theme if theme is not None and theme not in self.available_themes else None
        self.theme = DARK.name if theme is None or self._unknown_theme else theme

    # --- the session --------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Show the screen, then open the session behind it."""
        self.push_screen(ChatScreen())
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self._start_opening)
        if self._unknown_theme is not None:
            names = ", ".join(sorted(self.available_themes))
            self.notify(f"There is no theme {on_one_line(self._unknown_theme)}. There are: {names}.", markup=False)

    def _start_opening(self) -> None:
        self._opener = threading.Thread(target=self._open, name="homeai-open", daemon=True)
        self._opener.start()

    def _open(self) -> None:
        try:
            self._session = self._open_session(self._inbox.put)
        except HomeaiError as error:
            self.post_message(SessionRefused(error))
        except Exception as error:  # noqa: BLE001 - on a thread of its own it would be lost
            self.call_later(partial(self._handle_exception, error))
        else:
            self.post_message(SessionOpened(self._session))

    def close_session(self) -> None:
        """End the probes and the engine, at most about three seconds; safe to call twice, also without a session."""
        if self._stop_sampling is not None:
            self._stop_sampling()
        if self._opener is not None:
            self._opener.join(timeout=5.0)
        if self._session is not None:
            self._session.close()

    @on(SessionOpened)
    def _take_session(self, message: SessionOpened) -> None:
        session = message.session
        if self._start_sampling is not None:
            self._stop_sampling = self._start_sampling(session)
        self._chat = session.open_chat(self._system)
        if self._waiting is not None:
            text, pressed_at_ns = self._waiting
            self._waiting = None
            self._ask(session, self._chat, text, pressed_at_ns)

    @on(SessionRefused)
    def _tell_refusal(self, message: SessionRefused) -> None:
        if self._insist:
            self.refusal = message.error
            status = int(message.error.exit_code)
            self.exit(status, return_code=status)
            return
        self._has_no_session = True
        if self._waiting is not None:
            text, _ = self._waiting
            self._waiting = None
            self.chat_screen.conversation.end(None)
            self.chat_screen.prompt.give_back(text)
        self.chat_screen.alert(message.error.fault)

    @property
    def session(self) -> SessionLike | None:
        """The open session; None before there is one."""
        return self._session

    # --- asking -------------------------------------------------------------------------------------------------------

    @property
    def chat_screen(self) -> ChatScreen:
        """The main screen, also while another lies over it."""
        return next(screen for screen in self.screen_stack if isinstance(screen, ChatScreen))

    @property
    def waits_for_facts(self) -> bool:
        """Whether facts came that the screen does not show yet."""
        return bool(self._inbox)

    @on(Prompt.Submitted)
    def _submit(self, message: Prompt.Submitted) -> None:
        if not message.text.strip():
            return
        if self._waiting is not None or self._is_live():
            self.notify("One answer at a time: Esc stops this one.", timeout=3)
            return
        pressed_at_ns = pressed_at(message.pressed_at_s, self._clock())
        if self._session is not None and self._chat is not None:
            if not self._ask(self._session, self._chat, message.text, pressed_at_ns):
                return
        elif self._has_no_session:
            return
        else:
            self._waiting = (message.text, pressed_at_ns)
            self.chat_screen.conversation.ask(message.text)
        message.prompt.accepted()

    def _ask(self, session: SessionLike, chat: Chat, text: str, pressed_at_ns: int) -> bool:
        waited = self._answer_id is None and self.chat_screen.conversation.is_waiting
        try:
            answer_id = session.ask(chat, text, sampler=self._sampler, submitted_at_ns=pressed_at_ns)
        except HomeaiError as error:
            self.chat_screen.alert(error.fault)
            return False
        self._answer_id, self._ended_view = answer_id, None
        self.chat_screen.alert(None)
        if not waited:
            self.chat_screen.conversation.ask(text)
        return True

    @on(Prompt.TooLong)
    def _refuse_paste(self, message: Prompt.TooLong) -> None:
        self.notify(
            f"That would make {message.characters:,} characters, more than any model reads. Nothing was pasted.",
            severity="warning",
            timeout=6,
        )

    def _is_live(self) -> bool:
        return self._answer_id is not None and self._ended_view is None

    # --- facts --------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        session = self._session
        if session is None:
            return
        facts = self._inbox.drain()
        loading = session.state.load.loading is not None
        if not facts and not self._is_live() and not loading:
            return
        with self.batch_update():
            for channel, text in joined_texts(facts, self._answer_id):
                self.chat_screen.conversation.write(channel, text)
            for fact in facts:
                self._take(fact)
            self.chat_screen.show(self._frame(session))

    def _take(self, fact: AnyFact) -> None:
        screen = self.chat_screen
        match fact:
            case Ended(answer_id=self._answer_id):
                self._end(fact)
            case Notice() if (fact.code, fact.message) not in self._told:
                self._told.add((fact.code, fact.message))
                screen.conversation.remark(f"{fact.message} {fact.help}".strip())
            case EngineEnded() if fact.fault is not None:
                self._engine_words = fact.stderr_tail
                screen.alert(fact.fault, fact.stderr_tail)
            case LoadFailed() if fact.fault.code != "cancelled":
                screen.alert(fact.fault, self._engine_words)
            case LoadEnded():
                self._engine_words = ""
                screen.alert(None)

    def _end(self, ended: Ended) -> None:
        session = self._session
        assert session is not None
        self._ended_view = view(session.state, ended.answer_id, self._clock())
        self.chat_screen.conversation.end(closing(self._ended_view))
        if ended.fault is not None:
            self.chat_screen.alert(ended.fault, self._engine_words)

    def _frame(self, session: SessionLike) -> Frame:
        state, now = session.state, self._clock()
        answer = self._ended_view
        if answer is None and self._answer_id in state.answers:
            assert self._answer_id is not None
            answer = view(state, self._answer_id, now)
        return Frame(state, answer, load_view(state, now))

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_stop(self) -> None:
        """Stop the answer."""
        if self._waiting is not None:
            self._waiting = None
            self.chat_screen.conversation.end(None)
        elif self._session is not None and self._answer_id is not None and self._ended_view is None:
            self._session.stop(self._answer_id)

    def action_copy_or_stop(self) -> None:
        """Copy the selected text; without one stop the answer; without one say how to quit."""
        selected = self.chat_screen.prompt.selected_text or self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif self._is_live() or self._waiting is not None:
            self.action_stop()
        else:
            self.notify("Ctrl+Q quits.", timeout=3)

    def action_new_chat(self) -> None:
        """Stop what runs and begin with an empty context."""
        self.action_stop()
        if self._session is not None:
            self._chat = self._session.open_chat(self._system)
            self._answer_id, self._ended_view = None, None
            self.chat_screen.begin_anew()
            self.chat_screen.show(self._frame(self._session))

    def action_toggle_reasoning(self) -> None:
        """Show or hide what the model thought before it answered."""
        self.chat_screen.conversation.toggle_class("show-reasoning")

    def action_help(self) -> None:
        """Open the help page."""
        if isinstance(self.screen, ChatScreen):
            self.push_screen(HelpScreen())

    def action_scroll(self, pages: int) -> None:
        """Scroll the conversation, wherever the cursor is."""
        conversation = self.chat_screen.conversation
        if conversation.max_scroll_y <= 0:
            return
        if pages < 0:
            conversation.scroll_page_up(animate=False)
        else:
            conversation.scroll_page_down(animate=False)

    def action_suspend_process(self) -> None:
        """Hand the terminal back to the shell, with everything we started."""
        suspend_job()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys to others where ours mean nothing: pages of help, Ctrl+Z (undo) where no shell waits."""
        match action:
            case "scroll":
                return isinstance(self.screen, ChatScreen)
            case "suspend_process":
                return self._driver is not None and self._driver.can_suspend and can_suspend_job()
            case _:
                return super().check_action(action, parameters)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Our actions among those of the command palette."""
        yield from super().get_system_commands(screen)
        yield SystemCommand("New chat", "Begin with an empty context", self.action_new_chat)
        yield SystemCommand("Stop", "Stop the answer", self.action_stop)
        yield SystemCommand("Thoughts", "Show or hide what the model thought", self.action_toggle_reasoning)
        yield SystemCommand("Help", "The keys, and what the words mean", self.action_help)

    def _handle_exception(self, error: Exception) -> None:
        """Leave in order; who started us tells of the error once the terminal is restored.

        Textual would print a traceback with the values of all variables, prompts among them.
        """
        self.crash = self.crash or error
        super()._handle_exception(error)
        self._exit_renderables.clear()
