"""The instrumented loop: one iteration at a time over all live answers, every nanosecond of it attributed.

Time is kept in laps: `_lap` reads the clock once and charges the span since the last reading to one activity. The
answers that the activity served get it under its name, all others as `wait_other`. So the parts of an answer add up to
its wall time by construction, and a lap costs one clock reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from time import process_time_ns

from msgspec.structs import replace

from homeai.clock import now_ns
from homeai.engine.backend import Emit
from homeai.engine.llamacpp.answer import COMPUTE, CUT_SHORT, IDLE, SAMPLE, TEXT, WAIT_OTHER, Answer, Slot
from homeai.engine.llamacpp.cache import SlotPool
from homeai.engine.llamacpp.loading import Loaded
from homeai.engine.llamacpp.native import ABORTED, DECODED, NO_SLOT, Run
from homeai.engine.llamacpp.plan import Budget, Share, plan
from homeai.engine.llamacpp.prompting import MadePrompt
from homeai.engine.llamacpp.sampling import TokenChooser
from homeai.engine.llamacpp.too_long import too_long
from homeai.engine.wire import Ask
from homeai.errors import HomeaiError
from homeai.events import Began, Channel, Ended, Fault, FinishReason, Notice, Queued, Text, Tokenised, Tokens
from homeai.options import EngineOptions
from homeai.platform.paging import major_faults


class Scheduler:
    """Advances the answers of one loaded model."""

    def __init__(self, loaded: Loaded, options: EngineOptions, emit: Emit) -> None:
        self._context = loaded.context
        self._vocabulary = loaded.model.vocabulary
        self._rolls_back = loaded.model.rolls_back
        self._context_trained = loaded.model.context_trained
        self._emit = emit
        self._decode_first = options.decode_first
        self._pool = SlotPool(loaded.context, options.sequences, rolls_back=loaded.model.rolls_back)
        # A GPU finishes what it was given: only between chunks can it be stopped, so they are kept short there.
        self._budget = Budget(
            fixed=options.iteration_tokens,
            largest=loaded.context.ubatch_size if loaded.on_gpu else loaded.context.batch_size,
            stoppable=not loaded.on_gpu,
        )
        self._prompts = loaded.prompts
        # A GPU computes a graph as a whole: nothing is told from inside.
        self._graph_steps = 0 if loaded.on_gpu else loaded.context.graph_steps
        self._queue: deque[tuple[Ask, int]] = deque()
        self._live: list[Answer] = []
        self._interrupted: set[int] = set()
        self._computed = 0
        """Tokens computed so far, of all answers."""
        self._wants_room = False
        """The first in the queue fits only when a live answer has ended."""
        self._lap_at_ns = now_ns()

    # --- what the session asks --------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether any answer is live or waits."""
        return bool(self._live or self._queue)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The sequences of the cache and what they hold."""
        return tuple(self._pool.slots)

    def ask(self, request: Ask, received_at_ns: int) -> None:
        """Take a request in; the next step begins it if a sequence is free."""
        before = [answer.id for answer in self._live] + [waiting.answer_id for waiting, _ in self._queue]
        waits = len(before) >= len(self._pool.slots)
        self._emit(Queued(at_ns=received_at_ns, answer_id=request.answer_id, behind=tuple(before) if waits else ()))
        if not self.busy:
            self._lap_at_ns = now_ns()
        self._queue.append((request, received_at_ns))

    def stop(self, answer_id: int) -> None:
        """End an answer; what it computed stays in the cache. Unknown answers are ignored."""
        self._interrupted.discard(answer_id)
        for answer in self._live:
            if answer.id == answer_id:
                self._finish(answer, "cancelled")
                return
        for item in self._queue:
            if item[0].answer_id == answer_id:
                self._queue.remove(item)
                self._wants_room = False
                self._emit(Ended(at_ns=now_ns(), answer_id=answer_id, finish_reason="cancelled"))
                return

    def interrupt(self, answer_id: int) -> None:
        """Break off the running computation if it may serve this answer. Called on another thread."""
        self._interrupted.add(answer_id)
        self._context.abort()

    def reset(self) -> None:
        """Stop every answer and empty the cache."""
        for answer_id in [answer.id for answer in self._live] + [request.answer_id for request, _ in self._queue]:
            self.stop(answer_id)
        self._pool.empty()

    def step(self) -> None:
        """Advance by one iteration."""
        self._lap(IDLE, self._live)
        self._context.clear_abort()
        for answer_id in tuple(self._interrupted):
            self.stop(answer_id)
        self._admit()
        shares = self._plan()
        if shares:
            self._iterate(shares)

    # --- time -------------------------------------------------------------------------------------------------------

    def _lap(self, activity: int, served: Iterable[Answer]) -> int:
        """Charge the time since the last lap; return the stamp of its end."""
        at_ns = now_ns()
        span_ns = at_ns - self._lap_at_ns
        self._lap_at_ns = at_ns
        for answer in self._live:
            answer.meter.spans_ns[activity if answer in served else WAIT_OTHER] += span_ns
        return at_ns

    # --- beginning --------------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        while self._queue and not self._wants_room and self._pool.free():
            request, _ = self._queue[0]
            began_at_ns = now_ns()
            try:
                prompt = self._prompts.make(request)
            except HomeaiError as problem:
                self._queue.popleft()
                self._refuse(request, began_at_ns, problem.fault)
                continue
            if self._must_wait(len(prompt.ids)):
                self._wants_room = True
                self._lap(TEXT, ())
                return
            self._queue.popleft()
            self._begin(request, began_at_ns, prompt)

    def _must_wait(self, prompt_tokens: int) -> bool:
        """Whether the prompt fits, but not beside what the live answers hold and still have to read."""
        held = sum(len(answer.slot.ids) + len(answer.todo) for answer in self._live)
        return held > 0 and prompt_tokens <= self._context.size < prompt_tokens + held + 1

    def _refuse(self, request: Ask, began_at_ns: int, fault: Fault) -> None:
        self._emit(Began(at_ns=began_at_ns, answer_id=request.answer_id))
        self._emit(Ended(at_ns=now_ns(), answer_id=request.answer_id, finish_reason="error", fault=fault))
        self._lap(TEXT, ())

    def _begin(self, request: Ask, began_at_ns: int, prompt: MadePrompt) -> None:
        ids = prompt.ids
        size = self._context.size
        slot = self._pool.choose(ids, request.chat_id)
        assert slot is not None
        held = len(slot.ids)
        fits = 0 < len(ids) <= size
        parting = self._pool.parting(request, slot, ids)
        reused = self._pool.reuse(slot, ids) if fits else 0
        slot.chat_id = request.chat_id
        chooser = TokenChooser(request.sampler, ids, self._vocabulary.size)
        self._emit(Began(at_ns=began_at_ns, answer_id=request.answer_id, seed=chooser.seed))
        self._emit(prompt.templated)
        tokenised = Tokenised(
            at_ns=now_ns(),
            answer_id=request.answer_id,
            started_at_ns=prompt.templated.at_ns,
            prompt=len(ids),
            reused=reused,
            cached=held,
            context=size,
            context_used_others=self._pool.used - len(slot.ids),
            divergence=parting,
        )
        self._emit(tokenised)
        if not fits:
            chooser.close()
            fault = too_long(request.messages, len(ids), size, self._context_trained).fault
            self._emit(Ended(at_ns=now_ns(), answer_id=request.answer_id, finish_reason="error", fault=fault))
            self._lap(TEXT, ())
            return
        self._lap(TEXT, ())
        answer = Answer(
            request=request,
            slot=slot,
            prompt_ids=ids,
            todo=ids[reused:],
            chooser=chooser,
            text=prompt.text,
            tokenised=tokenised,
            chunk_began_at_ns=tokenised.at_ns,
            faults=major_faults(),
            cpu_ns=process_time_ns(),
        )
        # The lap above ended a little after the tokenising did; that little belongs to this answer too.
        answer.meter.spans_ns[TEXT] = self._lap_at_ns - tokenised.at_ns
        slot.answer = answer
        self._live.append(answer)

    # --- one iteration ----------------------------------------------------------------------------------------------

    def _plan(self) -> list[Share]:
        # With less than one token for each, the same answers would be left out every time.
        budget = max(self._budget.tokens(shared=len(self._live) > 1), len(self._live))
        shares = plan(self._live, budget=budget, decode_first=self._decode_first)
        fitting: list[Share] = []
        needed = 0
        for share in shares:
            needed += share.count
            if self._pool.make_room(needed):
                fitting.append(share)
                continue
            needed -= share.count
            self._finish(share.answer, "context")
        return fitting

    def _iterate(self, shares: list[Share]) -> None:
        served = [share.answer for share in shares]
        runs = [
            Run(
                share.answer.slot.number,
                len(share.answer.slot.ids),
                share.answer.todo[: share.count],
                share.count == len(share.answer.todo),
            )
            for share in shares
        ]
        rows = self._context.fill(runs)
        compute_began_at_ns = self._lap(TEXT, served)
        outcome = self._decode(shares)
        self._context.synchronise()
        at_ns = self._lap(COMPUTE, served)
        if outcome == ABORTED:
            self._take_back(shares)
            return
        if outcome != DECODED:
            self._recover(shares, outcome)
            return
        self._budget.learn(sum(share.count for share in shares), at_ns - compute_began_at_ns)
        shared = len(shares) > 1
        self._computed += sum(share.count for share in shares)
        for share, run in zip(shares, runs, strict=True):
            answer = share.answer
            answer.slot.ids.extend(run.ids)
            del answer.todo[: share.count]
            if answer.reading:
                self._emit(answer.read(share.count, at_ns, shared=shared))
        for share, run, row in zip(shares, runs, rows, strict=True):
            if run.logits:
                self._sample(share.answer, row, shared)

    def _decode(self, shares: list[Share]) -> int:
        reading = next((share for share in shares if share.answer.reading), None)
        tokens = sum(share.count for share in shares)
        if reading is None or not self._graph_steps or not self._budget.is_slow(tokens):
            return self._context.decode()
        tell = reading.answer.progress(reading.count, self._graph_steps, self._emit)
        return self._context.decode_telling(tell)

    def _sample(self, answer: Answer, row: int, shared: bool) -> None:
        token = answer.chooser.choose(self._context, row)
        at_ns = self._lap(SAMPLE, (answer,))
        compute, sample, text, wait_other, idle = answer.meter.take()
        index = len(answer.sampled)
        answer.sampled.append(token)
        if (late := answer.watch(at_ns, self._computed)) is not None:
            self._emit(late)
        ends = self._vocabulary.is_end(token)
        handed = [] if ends else answer.text.feed(self._prompts.piece(token))
        self._emit(
            Tokens(
                at_ns=at_ns,
                answer_id=answer.id,
                first=index,
                ids=(token,),
                sampled_at_ns=(at_ns,),
                compute_ns=(compute,),
                sample_ns=(sample,),
                text_ns=(text,),
                wait_other_ns=(wait_other,),
                idle_ns=(idle,),
                reasoning=0 if ends else int(answer.text.in_reasoning) + answer.text.reasoning_tokens_settled(),
                shared=shared,
            )
        )
        self._hand_over(answer, handed)
        limit = answer.request.sampler.max_tokens
        if ends or answer.text.stopped_by is not None:
            self._finish(answer, "stop")
        elif limit is not None and index + 1 >= limit:
            self._finish(answer, "length")
        else:
            answer.todo.append(token)
        self._lap(TEXT, (answer,))

    # --- what can go wrong in an iteration --------------------------------------------------------------------------

    def _take_back(self, shares: list[Share]) -> None:
        """After an abort: find out how far the cache came, and leave the rest to the next iteration.

        The aborted micro-batch is gone from the cache for every sequence in it; earlier ones stay. The last token of a
        run is computed again in any case, because its logits are lost.
        """
        self._context.clear_abort()
        for share in shares:
            answer, slot = share.answer, share.answer.slot
            if not self._rolls_back:
                # Its state has taken in an unknown part of the batch, and cannot give it back.
                self._read_again(answer)
                continue
            came = self._context.length(slot.number) - len(slot.ids)
            if came == len(answer.todo):
                came -= 1
            if came < 0 or not self._context.keep(slot.number, len(slot.ids) + came):
                self._read_again(answer)
                continue
            slot.ids.extend(answer.todo[:came])
            del answer.todo[:came]
            if answer.reading:
                self._emit(answer.read(came, self._lap_at_ns, shared=len(shares) > 1))

    def _recover(self, shares: list[Share], outcome: int) -> None:
        """After a failed decode: empty the sequences and read them once more; a second failure ends the answer."""
        reason = "found no room in its cache" if outcome == NO_SLOT else f"failed ({outcome})"
        for answer in [share.answer for share in shares]:
            if answer.retried:
                fault = Fault(
                    code="decode_failed",
                    message=f"The engine {reason} twice while computing this answer.",
                    help="Ask again; if it happens again, a smaller context or another model may work.",
                )
                self._pool.cut(answer.slot, 0)
                self._finish(answer, "error", fault)
                continue
            answer.retried = True
            self._emit(
                Notice(
                    at_ns=now_ns(),
                    code="engine_retry",
                    message=f"The engine {reason}; everything is read once more.",
                    answer_id=answer.id,
                )
            )
            self._read_again(answer)

    def _read_again(self, answer: Answer) -> None:
        answer.todo[:0] = answer.slot.ids
        self._pool.cut(answer.slot, 0)
        if answer.reading:
            answer.done = 0
            answer.tokenised = replace(answer.tokenised, reused=0)
            self._emit(answer.tokenised)

    # --- ending -----------------------------------------------------------------------------------------------------

    def _hand_over(self, answer: Answer, handed: Sequence[tuple[Channel, str]]) -> None:
        for channel, text in handed:
            self._emit(Text(at_ns=now_ns(), answer_id=answer.id, channel=channel, text=text))

    def _finish(self, answer: Answer, reason: FinishReason, fault: Fault | None = None) -> None:
        self._hand_over(answer, answer.text.finish())
        answer.chooser.close()
        ended_at_ns = self._lap(IDLE if reason in CUT_SHORT else TEXT, (answer,))
        self._live.remove(answer)
        self._wants_room = False
        self._prompts.remember(answer.id, answer.sampled)
        self._pool.release(answer, ended_at_ns)
        self._emit(answer.end(ended_at_ns, reason, fault))
