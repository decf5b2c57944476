"""Host targets: what `--host` and `--host-target` mean, and that a build can say it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.backend.tvm.target import TRIPLES, HostTarget, parse_host, read_host
from relay_hw.errors import InputError


def test_words() -> None:
    assert parse_host() == HostTarget("llvm")
    assert parse_host().is_native
    arm = parse_host("llvm", "aarch64,mcpu=cortex-a72,mattr=+neon,mattr=-crypto")
    assert arm == HostTarget("llvm", "aarch64-linux-gnu", "cortex-a72", ("+neon", "-crypto"))
    assert (arm.arch, arm.is_native) == ("aarch64", False)
    assert parse_host("llvm", "riscv64-unknown-linux-gnu").triple == "riscv64-unknown-linux-gnu"
    assert parse_host("llvm", "mcpu=x86-64-v2") == HostTarget("llvm", mcpu="x86-64-v2")
    assert parse_host("cuda") == HostTarget("cuda", gpu="sm_90")
    assert parse_host("cuda", "sm_75").gpu == "sm_75"
    assert parse_host("opencl") == HostTarget("opencl")


@pytest.mark.parametrize(
    ("kind", "detail", "message"),
    [
        ("metal", None, "host must be one of llvm, cuda, opencl, numpy, not metal"),
        ("llvm", "z80", "host target must be aarch64, arm, riscv64, x86_64 or a triple, then mcpu=NAME and"),
        ("llvm", "aarch64,arm", "mattr=+FEATURE, not 'arm'"),
        ("llvm", "aarch64,mattr=neon", "mattr=+FEATURE, not 'mattr=neon'"),
        ("llvm", "mcpu=a,mcpu=b", "mattr=+FEATURE, not 'mcpu=b'"),
        ("llvm", "aarch64,", "mattr=+FEATURE, not ''"),
        ("cuda", "turing", "host target of cuda must be an architecture such as sm_90, not turing"),
        ("cuda", "sm_80,sm_90", "host target of cuda must be an architecture such as sm_90, not sm_80,sm_90"),
        ("opencl", "pocl", "host target of opencl must be left out, not be pocl"),
        ("numpy", "x86_64", "host target of numpy must be left out, not be x86_64"),
    ],
)
def test_refused(kind: str, detail: str | None, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        parse_host(kind, detail)


_names = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,8}", fullmatch=True)
_cpus = st.builds(
    HostTarget,
    st.just("llvm"),
    st.sampled_from(["", *TRIPLES.values()]),
    st.one_of(st.just(""), _names),
    st.lists(st.builds("+{}".format, _names), max_size=3).map(tuple),
)
_gpus = st.builds(HostTarget, st.just("cuda"), gpu=st.sampled_from(["sm_75", "sm_90a", "sm_100"]))


@given(st.one_of(_cpus, _gpus, st.just(HostTarget("opencl")), st.just(HostTarget("numpy"))))
def test_text_reads_back(target: HostTarget) -> None:
    assert read_host(str(target)) == target
    assert read_host(target) is target
