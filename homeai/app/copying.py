"""What is copied: the selection, an answer, the code in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeai.app import clipboard

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

_SHIFT = "Not there? Hold Shift and drag the mouse over the text."


def copy_selection(app: HomeaiApp) -> bool:
    """Copy the selected text of the box or of the screen; False where nothing is selected."""
    selected = app.chat_screen.prompt.selected_text or app.screen.get_selected_text()
    if not selected:
        return False
    clipboard.copy(app, selected, "the selection", else_=_SHIFT)
    app.screen.clear_selection()
    return True


def copy_answer(app: HomeaiApp) -> None:
    """Copy the answer whose figures are shown: the newest one, or the one the user looks back at."""
    if (found := _answer(app)) is not None:
        text, what = found
        clipboard.copy(app, text, what, else_="Not there? /copy file saves it.")


def save_answer(app: HomeaiApp, argument: str) -> None:
    """The same into a file: `/copy file`."""
    if _is_file(app, "copy", argument) and (found := _answer(app)) is not None:
        clipboard.save(app, *found)


def copy_code(app: HomeaiApp) -> None:
    """Copy the next code block of that answer; behind the last comes the first."""
    if (found := _next_code(app)) is not None:
        text, what = found
        clipboard.copy(app, text, what, else_="Not there? /code file saves it.")


def save_code(app: HomeaiApp, argument: str) -> None:
    """The same into a file: `/code file`, the block that was copied last."""
    if _is_file(app, "code", argument) and (found := _next_code(app, step=0)) is not None:
        clipboard.save(app, *found)


def code_blocks(markdown: str) -> list[str]:
    """The code blocks of a text without their fences, in order; one that has not ended yet counts."""
    from markdown_it import MarkdownIt

    return [token.content for token in MarkdownIt().parse(markdown) if token.type in ("fence", "code_block")]


def _is_file(app: HomeaiApp, word: str, argument: str) -> bool:
    if argument.lower() == "file":
        return True
    app.notify(f"/{word} copies, /{word} file saves a file.", timeout=5, markup=False)
    return False


def _answer(app: HomeaiApp) -> tuple[str, str] | None:
    """The text of the answer that is shown and what to call it; says so where there is none."""
    chat = app.desk.current
    state = None if app.session is None else app.session.state
    answer = None if state is None or chat.shown_id is None else state.answers.get(chat.shown_id)
    if answer is None or not (text := answer.answer_text):
        app.notify("There is no answer to copy yet.", timeout=4)
        return None
    number, count = chat.place
    what = "the answer" if count == 1 else f"answer {number} of {count}"
    return text, what if answer.ended is not None else f"{what} so far"


def _next_code(app: HomeaiApp, step: int = 1) -> tuple[str, str] | None:
    """The code block `step` behind the one copied last, and what to call it; says so where there is none."""
    if (found := _answer(app)) is None:
        return None
    text, of_answer = found
    if not (blocks := code_blocks(text)):
        app.notify(f"There is no code block in {of_answer}.", timeout=4, markup=False)
        return None
    chat = app.desk.current
    answer_id, before = chat.copied_code
    at = (before + step) % len(blocks) if answer_id == chat.shown_id else 0
    chat.copied_code = (chat.shown_id, at)
    what = "the code block" if len(blocks) == 1 else f"code block {at + 1} of {len(blocks)}"
    return blocks[at], what if chat.browsed_id is None else f"{what} of {of_answer}"
