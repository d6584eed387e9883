"""``advisor`` and ``python -m advisor``."""

from __future__ import annotations

from advisor.cli.main import main

if __name__ == "__main__":
    main()
