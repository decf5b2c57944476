"""`python -m relay_hw.cli` is `relay-hw`."""

from __future__ import annotations

import sys

from relay_hw.cli.main import main

sys.exit(main())
