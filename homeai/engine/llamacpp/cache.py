"""Which sequence of the unified KV cache an answer gets, what of it can be reused, and who must make room."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.engine.llamacpp.answer import Slot, common_prefix
from homeai.engine.llamacpp.native import Context


class SlotPool:
    """The sequences of one context. Their tokens share its cells."""

    def __init__(self, context: Context, sequences: int) -> None:
        self._context = context
        self.slots = [Slot(number) for number in range(sequences)]

    @property
    def used(self) -> int:
        """Cells in use."""
        return sum(len(slot.ids) for slot in self.slots)

    def free(self) -> list[Slot]:
        """The slots no answer is using, whatever they still hold."""
        return [slot for slot in self.slots if slot.answer is None]

    def choose(self, prompt_ids: Sequence[int], chat_id: int) -> Slot | None:
        """The free slot that gains most and loses least: tokens reused against tokens of another chat thrown away.

        Two chats often share no more than a system prompt; that must not make one take the other's place while an
        empty slot is there. What the chat itself held and does not share any more, an answer that was replaced, is no
        loss, and would only stand in the way.
        """

        def worth(slot: Slot) -> tuple[int, bool, int]:
            shared = common_prefix(slot.ids, prompt_ids)
            own = slot.chat_id == chat_id
            lost = 0 if own else len(slot.ids) - shared
            return shared - lost, own, -slot.used_at_ns

        return max(self.free(), key=worth, default=None)

    def reuse(self, slot: Slot, prompt_ids: Sequence[int]) -> int:
        """Cut the slot back to what it shares with the prompt; return how many tokens that are.

        At least one token of the prompt is left to evaluate: without it there would be no logits to sample from.
        """
        shared = min(common_prefix(slot.ids, prompt_ids), len(prompt_ids) - 1)
        if shared < len(slot.ids):
            self.cut(slot, shared)
        return len(slot.ids)

    def cut(self, slot: Slot, tokens: int) -> bool:
        """Keep only the first `tokens` of a slot; False when the model cannot roll back, and then all are gone."""
        if self._context.keep(slot.number, tokens):
            del slot.ids[tokens:]
            return True
        self._context.keep(slot.number, 0)
        slot.ids.clear()
        return False

    def make_room(self, tokens: int) -> bool:
        """Empty idle slots, the longest unused first, until this many cells are free; False when they cannot be."""
        while self.used + tokens > self._context.size:
            idle = [slot for slot in self.free() if slot.ids]
            if not idle:
                return False
            self.cut(min(idle, key=lambda slot: slot.used_at_ns), 0)
        return True
