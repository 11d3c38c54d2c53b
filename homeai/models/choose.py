"""Finds the model that the user means: by path, by name, or without a word the last one used."""

from __future__ import annotations

import difflib
import errno
import json
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import get_args

from homeai.errors import NoModelError
from homeai.events import Fault
from homeai.models.judge import shown
from homeai.models.library import Candidate, find_candidates
from homeai.models.modelfile import ModelFile, Source, examine
from homeai.models.starter import HOW_TO_GET, find_starter
from homeai.places import home_dir
from homeai.whole import replace_file

__all__ = ["ModelFile", "last_model", "remember", "resolve_model"]

_LAST = "last-model.json"
_LISTED = 8  # names in one message
_EXAMINED = 20  # candidates of one name that are opened to see which of them can chat


def resolve_model(
    argument: str | None,
    *,
    folders: Iterable[Path],
    state_dir: Path,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    notice: Callable[[Fault], None] = lambda _fault: None,
    candidates: Sequence[Candidate] | None = None,
) -> ModelFile:
    """Return the model that is meant; it can chat.

    Args:
        argument: A path, or a name as `homeai models` shows it (also its beginning or a part of it, if only one model
            has that); None or nothing means the last one used, else the starter model.
        folders: The user's model folders, for names.
        state_dir: Where `remember` wrote.
        environ: The environment, which can move other programs' caches.
        home: The user's home folder, None for the real one.
        notice: Is told when the last model used has gone or broken and the starter takes its place.
        candidates: What a search of these places has found already; None to search for a name when one is given.

    Raises:
        NoModelError: There is no such model, several could be meant, or there is none at all.
        BrokenModelError: The file is there but cannot chat.
    """
    home = home or home_dir()
    texts = _readings(argument or "", home)
    if argument is None or not texts:
        return _default(state_dir, notice)
    paths = [Path(text) for text in texts]
    there = [path for path in paths if _is_there(path)]
    for path in there:
        # A folder's name may well be meant as a model's: a folder is no model anyway.
        if path.suffix.lower() == ".gguf" or not _is_folder(path):
            return examine(path).require_chat()
    if candidates is None:
        candidates = find_candidates(folders, environ, home)
    for text in texts:
        if matches := _matches(text, candidates):
            return _only(text, matches).require_chat()
    if there:
        return examine(there[0]).require_chat()
    raise _unknown(argument, paths[0], candidates)


def remember(model: ModelFile, state_dir: Path) -> None:
    """Write down the model that was used last; raises `OSError`."""
    note = json.dumps({"path": str(model.path), "name": model.name, "source": model.source})
    replace_file(state_dir / _LAST, note.encode("ascii"))


def last_model(state_dir: Path) -> ModelFile | None:
    """Return the model used last, as it is now; None if none was, or the note of it cannot be read."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        noted = json.loads((state_dir / _LAST).read_bytes())
        path, name, source = noted["path"], noted["name"], noted["source"]
        if isinstance(path, str) and isinstance(name, str) and source in get_args(Source):
            return examine(Path(path), source=source, name=name)
    return None


def _default(state_dir: Path, notice: Callable[[Fault], None]) -> ModelFile:
    last = last_model(state_dir)
    if last is not None and last.refusal is None:
        return last
    starter = find_starter()
    if last is not None and last.refusal is not None:
        gone = not _is_there(last.path)
        why = f"{shown(str(last.path))} is not there any more." if gone else last.refusal.message
        if starter is None:
            raise NoModelError(f"The model used last cannot be used: {why}", code="no_model", help=HOW_TO_GET)
        message = f"The model used last cannot be used, so the starter model takes its place: {why}"
        help = "Name another model with --model." if gone else last.refusal.help
        notice(Fault(code="last_model_gone", message=message, help=help))
    if starter is None:
        raise NoModelError(
            "No model is named and the starter model is not installed.", code="no_model", help=HOW_TO_GET
        )
    return examine(starter, source="starter").require_chat()


def _readings(argument: str, home: Path) -> list[str]:
    """What the argument can mean, the plainest first: as typed, without quotes, without a shell's escapes."""
    bare = argument.strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        bare = bare[1:-1]
    if not bare.strip():
        return []
    texts = [argument, bare, re.sub(r"\\(.)", r"\1", bare)] if os.sep == "/" else [argument, bare]
    return list(dict.fromkeys(_expanded(text, home) for text in texts))


def _expanded(text: str, home: Path) -> str:
    return str(home) + text[1:] if text == "~" or text.startswith(("~/", "~" + os.sep)) else text


def _is_there(path: Path) -> bool:
    """Whether there is anything of this name: a link that leads nowhere counts, for `examine` to explain."""
    try:
        path.lstat()
    except ValueError:
        return False
    except OSError as problem:
        return problem.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
    return True


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(path.stat().st_mode)
    return False


def _matches(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that the text names, by the strictest rule that finds any; each file once."""
    wanted = _folded(text)
    is_part = len(wanted) > 1  # one letter would be a part of nearly every name
    rules: tuple[Callable[[Candidate], bool], ...] = (
        lambda each: shown(text) in (each.name, shown(each.path.name)),
        lambda each: wanted in (_folded(each.name), _folded(each.path.name)),
        lambda each: is_part and _folded(each.name).startswith(wanted),
        lambda each: is_part and wanted in _folded(each.name),
    )
    for rule in rules:
        if found := {each.identity: each for each in reversed(candidates) if rule(each)}:
            return list(found.values())[::-1]
    return []


def _folded(text: str) -> str:
    """A name without differences of case and of Unicode composition (macOS decomposes what people type composed)."""
    return unicodedata.normalize("NFC", shown(text)).casefold()


def _only(text: str, matches: Sequence[Candidate]) -> ModelFile:
    if len(matches) == 1:
        return matches[0].examine()
    if len(matches) <= _EXAMINED:
        # A projector beside its model, or a broken copy, should not make the name ambiguous.
        models = [match.examine() for match in matches]
        able = [model for model in models if model.refusal is None]
        if len(able) == 1:
            return able[0]
        if not able:
            return models[0]
        matches = [match for match, model in zip(matches, models, strict=True) if model.refusal is None]
    several = len({match.name for match in matches}) < len(matches)
    names = [shown(str(match.path)) if several else match.name for match in matches]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    message = f'"{shown(text)}" can mean {len(names)} models: {", ".join(names[:_LISTED])}{more}.'
    raise NoModelError(message, code="no_model", help="Give the path." if several else "Give more of the name.")


def _unknown(argument: str, path: Path, candidates: Sequence[Candidate]) -> NoModelError:
    is_path = len(path.parts) > 1 or path.suffix.lower() == ".gguf"
    names = {_folded(each.name): each.name for each in candidates}
    with suppress(OSError, ValueError):
        if is_path:  # a slip in a path is most often in the file's name
            beside = (each for each in islice(path.parent.iterdir(), 1000) if each.suffix.lower() == ".gguf")
            names |= {_folded(each.stem): shown(str(each)) for each in beside}
    typed = _folded(path.stem if is_path else argument)[:200]  # difflib takes time in the square of the length
    close = difflib.get_close_matches(typed, names, n=3, cutoff=0.5)
    quoted = shown(argument) if len(argument) <= 200 else shown(argument[:200]) + "…"
    message = f"There is no {'file' if is_path else 'model'} {quoted}."
    if close:
        return NoModelError(
            message, code="no_model", help=f"Did you mean {' or '.join(names[name] for name in close)}?"
        )
    return NoModelError(message, code="no_model", help="`homeai models` lists the models of this machine.")
