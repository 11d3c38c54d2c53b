"""`python -m homeai` is `homeai`."""

from __future__ import annotations

import sys

from homeai.cli import main

if __name__ == "__main__":
    sys.exit(main())
