"""Chat templates: the families of real ones, what they cannot take, what is broken, and where the words end up."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from homeai.engine.llamacpp.reasoning import starts_open
from homeai.engine.llamacpp.template import ChatTemplate, Rendered, compile_template
from homeai.events import Message
from tests.engine import chat_templates as written


def _compile(source: str | None, *, chatml: bool = True) -> ChatTemplate:
    return compile_template(source, bos="<s>", eos="</s>", chatml=chatml, now=lambda: datetime(2026, 2, 3))


def _system(text: str) -> Message:
    return Message(role="system", content=text)


def _user(text: str) -> Message:
    return Message(role="user", content=text)


def _assistant(text: str, answer_id: int | None = None) -> Message:
    return Message(role="assistant", content=text, answer_id=answer_id)


def _codes(rendered: Rendered) -> list[str]:
    return [note.code for note in rendered.notes]


def _words(rendered: Rendered) -> list[str]:
    return [rendered.text[span.start : span.end] for span in rendered.layout.spans]


CHAT = (_system("Be brief."), _user("Hi!"), _assistant("Hello.", 7), _user("And\n\nnow?"))

TEXTS = {
    "chatml": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n"
    "Hello.<|im_end|>\n<|im_start|>user\nAnd\n\nnow?<|im_end|>\n<|im_start|>assistant\n",
    "llama3": "<s><|start_header_id|>system<|end_header_id|>\n\nToday: 03 Feb 2026\n\nBe brief.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nHi!<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    "Hello.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd\n\nnow?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "mistral": "<s>[INST] Be brief.\n\nHi! [/INST]Hello.</s>[INST] And\n\nnow? [/INST]",
    "gemma": "<s><start_of_turn>user\nBe brief.\n\nHi!<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n"
    "<start_of_turn>user\nAnd\n\nnow?<end_of_turn>\n<start_of_turn>model\n",
    "phi3": "<|system|>\nBe brief.<|end|>\n<|user|>\nHi!<|end|>\n<|assistant|>\nHello.<|end|>\n<|user|>\n"
    "And\n\nnow?<|end|>\n<|assistant|>\n",
    "zephyr": "<|system|>\nBe brief.</s>\n<|user|>\nHi!</s>\n<|assistant|>\nHello.</s>\n<|user|>\nAnd\n\nnow?</s>\n"
    "<|assistant|>\n",
    "deepseek-r1": "<s>Be brief.<|User|>Hi!<|Assistant|>Hello.<|end_of_sentence|><|User|>And\n\nnow?"
    "<|Assistant|><think>\n",
    "harmony": "<|start|>system<|message|>You are a model.\nCurrent date: 2026-02-03\nReasoning: medium<|end|>"
    "<|start|>developer<|message|># Instructions\n\nBe brief.<|end|><|start|>user<|message|>Hi!<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Hello.<|end|><|start|>user<|message|>And\n\nnow?<|end|>"
    "<|start|>assistant",
    "drops system": "USER: Be brief.\n\nHi!\nASSISTANT: Hello.\nUSER: And\n\nnow?\nASSISTANT:",
    "asks for tools": "system: Be brief.\nuser: Hi!\nassistant: Hello.\nuser: And\n\nnow?\n",
}
TEXTS["qwen3"] = TEXTS["typed parts"] = TEXTS["chatml"]

MERGES_SYSTEM = {"mistral", "gemma", "drops system"}


@pytest.mark.parametrize("family", written.FAMILIES)
def test_each_family_gives_its_text_and_shows_where_the_words_are(family: str) -> None:
    template = _compile(written.FAMILIES[family])
    rendered = template.render(CHAT)
    assert (template.name, template.notes, rendered.template) == ("model", (), "model")
    assert rendered.text == TEXTS[family]
    assert not rendered.transformed
    if family in MERGES_SYSTEM:
        assert _codes(rendered) == ["system_merged"]
        assert _words(rendered) == ["Be brief.\n\nHi!", "Hello.", "And\n\nnow?"]
    else:
        assert _codes(rendered) == []
        assert _words(rendered) == ["Be brief.", "Hi!", "Hello.", "And\n\nnow?"]
    assert [span.turn.answer_id for span in rendered.layout.spans if span.turn.role == "assistant"] == [7]


@pytest.mark.parametrize("family", written.FAMILIES)
def test_no_family_needs_the_system_message_or_the_generation_prompt(family: str) -> None:
    rendered = _compile(written.FAMILIES[family]).render([_user("Hi!")], add_generation_prompt=False)
    assert _words(rendered) == ["Hi!"]
    assert _codes(rendered) == []
    assert not TEXTS[family].endswith(rendered.text)


_content = st.text(st.sampled_from("ab <>|/\n\t{%}é🦙"), max_size=12)


@example("gemma", [("system", "")])
@given(
    st.sampled_from(list(written.FAMILIES)),
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), _content), min_size=1, max_size=6),
)
def test_any_chat_is_rendered_by_the_models_own_template_and_located(family: str, chat: list[tuple[str, str]]) -> None:
    messages = [Message(role=role, content=content) for role, content in chat]  # type: ignore[arg-type]
    rendered = _COMPILED[family].render(messages)
    assert rendered.template == "model"
    assert not rendered.transformed
    for span in rendered.layout.spans:
        assert rendered.text[span.start : span.end].strip() == span.turn.content.strip()
    # Nobody's words are lost, whatever order the roles come in, except where a template has room for one system text.
    if "message_left_out" not in _codes(rendered):
        located = "\n\n".join(span.turn.content for span in rendered.layout.spans)
        assert all(content in located for role, content in chat if content.strip() and role != "assistant")


_COMPILED = {family: _compile(source) for family, source in written.FAMILIES.items()}


def test_a_template_that_wants_turns_gets_them() -> None:
    rendered = _compile(written.GEMMA).render(
        [_assistant("Welcome."), _user("one"), _user("two"), _assistant("a", 1), _assistant("b", 2), _user("three")]
    )
    assert _words(rendered) == ["Welcome.", "one\n\ntwo", "a\n\nb", "three"]
    assert _codes(rendered) == ["turns_merged", "user_turn_added"]
    assert rendered.text.startswith("<s><start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nWelcome.")
    # A joined text is no answer's own: its tokens must not be looked up.
    assert [span.turn.answer_id for span in rendered.layout.spans] == [None] * 4


def test_a_template_that_takes_everything_gets_the_messages_as_they_are() -> None:
    rendered = _compile(written.PHI3).render([_assistant("Welcome."), _user("one"), _user("two")])
    assert _words(rendered) == ["Welcome.", "one", "two"]
    assert _codes(rendered) == []


def test_a_system_message_in_the_middle_is_not_lost() -> None:
    chat = [_user("one"), _assistant("a"), _system("Now in French."), _user("two")]
    rendered = _compile(written.LLAMA3.replace("{%- for message in messages %}", _REFUSES_LATE_SYSTEM)).render(chat)
    assert _words(rendered) == ["one", "a", "Now in French.\n\ntwo"]
    assert _codes(rendered) == ["system_merged"]


_REFUSES_LATE_SYSTEM = (
    "{%- for message in messages %}{% if message.role == 'system' %}{{ raise_exception('late') }}{% endif %}"
)


def test_reasoning_left_in_the_history_is_dropped_by_templates_that_do_so() -> None:
    chat = [_user("q"), _assistant("<think>\nplan\n</think>\n\nAnswer"), _user("r")]
    for source, words in ((written.QWEN3, "Answer"), (written.DEEPSEEK_R1, "\n\nAnswer")):
        rendered = _compile(source).render(chat)
        assert "plan" not in rendered.text
        assert _words(rendered) == ["q", words, "r"]


def test_the_prompt_tells_whether_it_opened_the_reasoning() -> None:
    opened = {family: starts_open(_COMPILED[family].render([_user("q")]).text) for family in written.FAMILIES}
    assert [family for family, tag in opened.items() if tag] == ["deepseek-r1"]


def test_a_template_that_changes_the_words_says_so_and_keeps_a_verbatim_text() -> None:
    rendered = _compile(written.ESCAPES).render([_user("1 & 2"), _assistant("Yes.")])
    assert rendered.transformed
    assert "1 &amp; 2" in rendered.text
    assert rendered.layout.spans == ()
    assert rendered.verbatim is not None
    assert rendered.verbatim.text == rendered.text.replace("&amp;", "&")
    assert [rendered.verbatim.text[span.start : span.end] for span in rendered.verbatim.spans] == ["1 & 2", "Yes."]


def test_a_template_that_adds_text_because_of_the_words_has_changed_them() -> None:
    source = written.PHI3 + "{% if 'why' in messages[-1].content %}Step by step:{% endif %}"
    assert not _compile(source).render([_user("what")]).transformed
    rendered = _compile(source).render([_user("why")])
    assert rendered.transformed
    assert rendered.text.endswith("Step by step:")


def test_words_that_look_like_the_stand_ins_are_still_located() -> None:
    rendered = _compile(written.PHI3).render([_user("qxstandin000001x"), _assistant("qxstandin000000x")])
    assert _words(rendered) == ["qxstandin000001x", "qxstandin000000x"]


# --- missing, broken, hostile -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [None, "", " \n"])
@pytest.mark.parametrize(("chatml", "name"), [(True, "chatml"), (False, "plain")])
def test_a_missing_template_is_replaced_by_name(source: str | None, chatml: bool, name: str) -> None:
    template = _compile(source, chatml=chatml)
    assert (template.name, [note.code for note in template.notes]) == (name, ["template_missing"])
    rendered = template.render(CHAT)
    assert rendered.template == name
    assert _words(rendered) == [message.content for message in CHAT]


BROKEN = {
    "a syntax error": ("{{ m['role' }}", "line 1"),
    "an open block": ("{% for m in messages %}{{ m.content }}", "endfor"),
    "an unknown filter": ("{{ messages | conjure }}", "conjure"),
    "an unknown tag": ("{% conjure %}", "conjure"),
    "an exception": ("{{ raise_exception('no\\nchat for you') }}", "no chat for you"),
    "a type error": ("{{ messages + 1 }}", "TypeError"),
    "no words": ("<|im_start|>user<|im_end|>", "what the user says"),
    "Python's insides": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
    "a change of our objects": ("{{ messages.clear() }}{{ messages }}", "unsafe"),
    "a huge repetition": ("{{ 'a' * 10 ** 9 }}", "too large"),
    "a huge repetition of a list": ("{% set x = 10 ** 6 * [0, 1] %}", "too large"),
    "a huge power": ("{{ 10 ** (10 ** 9) }}", "too large"),
    "a huge range": ("{% for i in range(10 ** 6) %}{% endfor %}", "range"),
    "endless output": ("{% for i in range(2000) %}{{ 'word ' * 200 }}{% endfor %}", "without end"),
    "endless recursion": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
    "a huge source": ("{{ messages }}" + " " * 1_000_001, "characters long"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_template_that_cannot_be_used_is_replaced_with_the_reason(kind: str) -> None:
    source, reason = BROKEN[kind]
    template = _compile(source)
    assert template.name == "chatml"
    (note,) = template.notes
    assert note.code == "template_broken"
    assert reason in note.message
    assert "\n" not in note.message
    assert note.help
    assert template.render(CHAT).text == TEXTS["chatml"]


def test_a_template_that_fails_on_some_chat_is_replaced_for_that_chat_only() -> None:
    source = written.PHI3.replace(
        "{% for message", "{% if 'bomb' in messages[-1].content %}{{ 1 / 0 }}{% endif %}{% for message", 1
    )
    template = _compile(source)
    bad = template.render([_user("a bomb")])
    assert (bad.template, _codes(bad)) == ("chatml", ["template_failed"])
    assert "ZeroDivisionError" in bad.notes[0].message
    good = template.render([_user("hi")])
    assert (good.template, _codes(good)) == ("model", [])


def test_a_template_that_writes_slowly_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeai.engine.llamacpp.sandbox.TIME_LIMIT_NS", 50_000_000)
    template = _compile("{% for i in range(90000) %}{% for j in range(300) %}{{ '' }}{% endfor %}{% endfor %}")
    assert "too long" in template.notes[0].message


def test_the_plain_fallback_stops_where_the_model_would_speak_for_the_user() -> None:
    template = _compile(None, chatml=False)
    rendered = template.render([_user("Hi!"), _assistant("Yes."), _user("And?")])
    assert rendered.stops == ("\n### User:",)
    assert rendered.text == "### User:\nHi!\n\n### Assistant:\nYes.</s>\n\n### User:\nAnd?\n\n### Assistant:\n"


def test_the_stops_are_those_of_the_template_that_wrote_the_prompt() -> None:
    source = "{% for m in messages %}{{ m.content }}{{ 1 / 0 if 'bomb' in m.content }}{% endfor %}"
    template = _compile(source, chatml=False)
    bad, good = template.render([_user("a bomb")]), template.render([_user("hi")])
    assert (bad.template, bad.stops) == ("plain", ("\n### User:",))
    assert (good.template, good.stops) == ("model", ())


# --- odd text ---------------------------------------------------------------------------------------------------------


def test_half_characters_never_reach_the_prompt() -> None:
    rendered = _compile(written.PHI3).render([_user("x\ud83d\ude00 y \udc81")])
    assert _words(rendered) == ["x😀 y \N{REPLACEMENT CHARACTER}"]
    rendered.text.encode()


def test_words_in_jinja_syntax_are_only_words() -> None:
    rendered = _compile(written.CHATML_DEFAULT_SYSTEM).render([_user("{{ 7 * 6 }} {% raw %}")])
    assert _words(rendered) == ["{{ 7 * 6 }} {% raw %}"]


def test_tojson_escapes_nothing_for_html() -> None:
    template = _compile("{% for m in messages %}{{ m.content }}{{ {'é<': 1} | tojson(indent=1) }}{% endfor %}")
    assert template.render([_user("q")]).text == 'q{\n "é<": 1\n}'


def test_an_empty_chat_still_gives_a_text() -> None:
    for source in written.FAMILIES.values():
        assert _compile(source).render([]).text is not None


@pytest.mark.parametrize("family", written.FAMILIES)
def test_empty_messages_do_not_confuse_the_spans(family: str) -> None:
    rendered = _COMPILED[family].render([_user(""), _assistant(" \n"), _user("q")])
    assert _words(rendered) == ["q"]
    assert rendered.template == "model"
