"""What is copied: the selection, an answer, the code in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Input, TextArea

from homeai.app import clipboard
from homeai.app.languages import suffix_of

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

_SHIFT = "Not there? Hold Shift and drag the mouse over the text."


def copy_selection(app: HomeaiApp) -> bool:
    """Copy the selected text of the box that has the cursor, or of the screen; False where nothing is selected."""
    box = app.screen.focused
    selected = box.selected_text if isinstance(box, Input | TextArea) else ""
    selected = selected or app.screen.get_selected_text() or ""
    if not selected:
        return False
    clipboard.copy(app, selected, "the selection", else_=_SHIFT)
    app.screen.clear_selection()
    return True


def copy_answer(app: HomeaiApp) -> None:
    """Copy the answer whose figures are shown: the newest one, or the one the user looks back at."""
    if (found := _answer(app)) is not None:
        _, text, what = found
        clipboard.copy(app, text, what, else_="Not there? /copy file saves it.")


def save_answer(app: HomeaiApp, argument: str) -> None:
    """The same into a file: `/copy file`."""
    if _is_file(app, "copy", argument) and (found := _answer(app)) is not None:
        clipboard.save(app, *found[1:])


def copy_code(app: HomeaiApp) -> None:
    """Copy the next code block of that answer; behind the last comes the first."""
    if (found := _next_code(app)) is not None:
        text, what, suffix = found
        clipboard.copy(app, text, what, else_="Not there? /code file saves it.", suffix=suffix)


def save_code(app: HomeaiApp, argument: str) -> None:
    """The same into a file: `/code file`, the block that was copied last."""
    if _is_file(app, "code", argument) and (found := _next_code(app, step=0)) is not None:
        text, what, suffix = found
        clipboard.save(app, text, what, suffix=suffix)


def code_blocks(markdown: str) -> list[tuple[str, str]]:
    """The code blocks of a text without their fences, in order, each with what stands behind its fence.

    One that has not ended yet counts.
    """
    from markdown_it import MarkdownIt

    tokens = MarkdownIt().parse(markdown)
    return [(token.content, token.info) for token in tokens if token.type in ("fence", "code_block")]


def _is_file(app: HomeaiApp, word: str, argument: str) -> bool:
    if argument.lower() == "file":
        return True
    app.notify(f"/{word} copies, /{word} file saves a file.", timeout=5, markup=False)
    return False


def _answer(app: HomeaiApp) -> tuple[int, str, str] | None:
    """The answer whose figures are shown, else the newest with words: its id, its text and what to call it."""
    chat = app.desk.current
    answers = {} if app.session is None else app.session.state.answers
    wanted = chat.answer_ids[::-1] if chat.browsed_id is None else [chat.browsed_id]
    answer_id = next((each for each in wanted if each in answers and answers[each].answer_text), None)
    if answer_id is None:
        words = "There is no answer to copy yet." if chat.browsed_id is None else "This answer has no words to copy."
        app.notify(words, timeout=4)
        return None
    answer, count = answers[answer_id], len(chat.answer_ids)
    what = "the answer" if count == 1 else f"answer {chat.answer_ids.index(answer_id) + 1} of {count}"
    return answer_id, answer.answer_text, what if answer.ended is not None else f"{what} so far"


def _next_code(app: HomeaiApp, step: int = 1) -> tuple[str, str, str] | None:
    """The code block `step` behind the one copied last, what to call it, how its file ends; says so where none is."""
    if (found := _answer(app)) is None:
        return None
    answer_id, text, of_answer = found
    if not (blocks := code_blocks(text)):
        app.notify(f"There is no code block in {of_answer}.", timeout=4, markup=False)
        return None
    chat = app.desk.current
    copied_id, before = chat.copied_code
    at = (before + step) % len(blocks) if copied_id == answer_id else 0
    chat.copied_code = (answer_id, at)
    what = "the code block" if len(blocks) == 1 else f"code block {at + 1} of {len(blocks)}"
    code, info = blocks[at]
    return code, what if answer_id == chat.newest_id else f"{what} of {of_answer}", suffix_of(info)
