"""Whether Python finds the packages that are meant, and no others of the same name. Imports none of them."""

from __future__ import annotations

import os
import shlex
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import homeai
from homeai.doctor.packages import to_type
from homeai.doctor.report import Check
from homeai.places import at_home

OWN = ("widgets", "probes")
"""Packages of homeai whose names others may use too."""
OTHERS = {
    "llama_cpp": "llama-cpp-python",
    "textual": "textual",
    "psutil": "psutil",
    "pynvml": "nvidia-ml-py",
    "httpx": "httpx",
    "platformdirs": "platformdirs",
    "msgspec": "msgspec",
    "jinja2": "jinja2",
    "markdown_it": "markdown-it-py",
}
"""What is imported, by what it is installed as."""


def shadowed(own: tuple[str, ...] = OWN) -> Check:
    """Whether another package hides one of homeai's, or one that it is built on."""
    home = Path(homeai.__file__).resolve().parent.parent
    for name in own:
        found = _found(name)
        if found is None:
            fix = to_type("install", "--force-reinstall", "--no-deps", "homeai")
            return Check("shadowed", "fail", f'The package "{name}" of homeai is missing.', fix)
        if found.parent != home:
            message = f'{at_home(found)} hides homeai\'s own package "{name}".'
            return Check("shadowed", "fail", message, _mend(name, found, "homeai"))
    for name, distribution in OTHERS.items():
        found, folder = _found(name), _installed_in(distribution)
        if found is not None and folder is not None and found.parent != folder:
            message = f"{at_home(found)} hides the package {distribution} that homeai is built on."
            return Check("shadowed", "fail", message, _mend(name, found, distribution))
    return Check("shadowed", "ok", "No other package hides one of homeai's.")


def _found(name: str) -> Path | None:
    """The folder or the file that Python takes for this package."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin).resolve()
    return origin.parent if origin.stem == "__init__" else origin


def _installed_in(distribution: str) -> Path | None:
    """The folder that this one's packages lie in; None where it is not installed, or tried out of its own sources."""
    try:
        found = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return None
    sources = found.read_text("direct_url.json") or ""
    return None if "editable" in sources else Path(str(found.locate_file(""))).resolve()


def _mend(name: str, found: Path, meant: str) -> str:
    listed = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if any(found.parent == Path(folder).resolve() for folder in listed):
        return "unset PYTHONPATH" if os.name == "posix" else "set PYTHONPATH="
    owners = [owner for owner in metadata.packages_distributions().get(name, []) if owner.lower() != meant]
    if owners:
        return to_type("uninstall", owners[0])
    if os.name == "posix":
        return f"mv {shlex.quote(str(found))} {shlex.quote(f'{found}-other')}"
    return f'ren "{found}" "{found.name}-other"'
