"""What tests need that may be missing; each skip says so."""

from __future__ import annotations

import pytest

from relay_hw.backend.tvm import is_installed

needs_tvm = pytest.mark.skipif(not is_installed(), reason="TVM is not installed")
