"""What fills a context adds up to its size."""

from __future__ import annotations

from msgspec.structs import replace

from homeai.events import Tokenised
from homeai.explain import explain
from homeai.metrics.fold import fold_all
from tests.metrics import stories


def test_the_last_token_is_not_counted_among_those_that_the_context_holds() -> None:
    """A prompt of 49 in a context of 256: 208 are written, the last of which has no place in it."""
    prompt = [
        replace(fact, prompt=49, reused=0, cached=0, context=256) if isinstance(fact, Tokenised) else fact
        for fact in stories.prompt_facts()
    ]
    written = stories.tokens(0, [3314.0 + 10 * n for n in range(208)])
    end = replace(stories.ended(6000, "context"), context_used=256)
    state = fold_all([*stories.session_facts(), *prompt, written, end])
    found = next(finding for finding in explain(state, 1).findings if finding.id == "cut_by_context")
    *parts, whole = [term.value for term in found.terms if term.unit == "tokens"]
    assert sum(parts) == whole == 256
    assert "208 tokens" in found.words
