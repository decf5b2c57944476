"""TVM's modules for this package, untyped, since TVM's annotations refuse calls that it accepts.

Importing this file imports TVM.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

tvm: Any = import_module("tvm")
relax: Any = import_module("tvm.relax")
relax_op: Any = import_module("tvm.relax.op")
cpu_pipeline: Any = import_module("tvm.relax.backend.cpu_generic.pipeline")
s_tir: Any = import_module("tvm.s_tir")
te: Any = import_module("tvm.te")
tirx: Any = import_module("tvm.tirx")
topi: Any = import_module("tvm.topi")
dlight: Any = import_module("tvm.s_tir.dlight")
ScheduleRule: Any = import_module("tvm.s_tir.dlight.base").ScheduleRule
