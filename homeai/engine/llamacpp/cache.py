"""Which sequence of the unified KV cache an answer gets, what of it can be reused, and who must make room."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.engine.llamacpp.answer import Answer, Slot, common_prefix
from homeai.engine.llamacpp.divergence import Held, divergence
from homeai.engine.llamacpp.native import Context
from homeai.engine.wire import Ask
from homeai.events import Divergence


class SlotPool:
    """The sequences of one context. Their tokens share its cells."""

    def __init__(self, context: Context, sequences: int, *, rolls_back: bool) -> None:
        self._context = context
        self._rolls_back = rolls_back
        self._held: dict[int, Held] = {}
        """By chat: what was held of it when its last answer ended."""
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

    def parting(self, request: Ask, slot: Slot, ids: Sequence[int]) -> Divergence | None:
        """Where the prompt parts from what was held of its chat; to be asked before `reuse` cuts the slot back."""
        held = self._held.get(request.chat_id)
        if held is None:
            return None
        return divergence(
            held,
            request.messages,
            at=common_prefix(slot.ids, ids),
            prompt=len(ids),
            evicted=slot.chat_id != request.chat_id or not slot.ids,
            rolls_back=self._rolls_back,
        )

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

    def release(self, answer: Answer, at_ns: int) -> None:
        """Keep what an answer that ends leaves in its slot, for the chat's next prompt."""
        slot, request = answer.slot, answer.request
        slot.answer, slot.used_at_ns = None, at_ns
        self._held[request.chat_id] = Held(
            messages=request.messages,
            answer_id=answer.id,
            tokens=len(slot.ids),
            reasoned=answer.text.has_reasoned,
        )

    def empty(self) -> None:
        """Hold nothing of any chat."""
        for slot in self.slots:
            self.cut(slot, 0)
        self._held.clear()

    def make_room(self, tokens: int) -> bool:
        """Empty idle slots, the longest unused first, until this many cells are free; False when they cannot be."""
        while self.used + tokens > self._context.size:
            idle = [slot for slot in self.free() if slot.ids]
            if not idle:
                return False
            self.cut(min(idle, key=lambda slot: slot.used_at_ns), 0)
        return True
