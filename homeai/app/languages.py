"""How files of code end, by the name of the language that a code block begins with."""

from __future__ import annotations

_SUFFIXES = {
    ".c": "c",
    ".cpp": "cpp c++ cc cxx",
    ".cs": "csharp cs c#",
    ".css": "css",
    ".csv": "csv",
    ".diff": "diff patch",
    ".go": "go golang",
    ".html": "html htm",
    ".ini": "ini cfg",
    ".java": "java",
    ".js": "javascript js node mjs",
    ".json": "json",
    ".jsonl": "jsonl ndjson",
    ".kt": "kotlin kt",
    ".lua": "lua",
    ".md": "markdown md",
    ".php": "php",
    ".pl": "perl pl",
    ".ps1": "powershell ps1 pwsh",
    ".py": "python py python3",
    ".r": "r",
    ".rb": "ruby rb",
    ".rs": "rust rs",
    ".sh": "sh bash shell zsh",
    ".sql": "sql sqlite mysql postgresql",
    ".svg": "svg",
    ".swift": "swift",
    ".tex": "latex tex",
    ".toml": "toml",
    ".ts": "typescript ts",
    ".tsx": "tsx",
    ".jsx": "jsx",
    ".xml": "xml",
    ".yaml": "yaml yml",
}
_BY_NAME = {name: suffix for suffix, names in _SUFFIXES.items() for name in names.split()}


def suffix_of(info: str) -> str:
    """How the file of a block ends that has this behind its fence: `.py` for `python title=x`, `.txt` where unknown."""
    name = info.strip().lower().partition(" ")[0].strip("{}.,")
    return _BY_NAME.get(name, ".txt")
