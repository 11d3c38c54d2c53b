"""The use cases: choose a model, ask, stop, over one worker at a time; the same for every front end."""

from homeai.session.chat import Chat
from homeai.session.session import Session

__all__ = ["Chat", "Session"]
