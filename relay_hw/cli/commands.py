"""All commands and their arguments: what `relay-hw --help` and the help of each command show.

Out: the parser. Each command names the function that runs it as `module:function`, which only that command imports.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any, Final

from relay_hw.accel.sim.names import CYCLE, RTL
from relay_hw.backend.engines import ENGINES
from relay_hw.cli import arguments as arg
from relay_hw.cli.catalogue import KINDS
from relay_hw.cli.parser import (
    MEMORY,
    Parser,
    add,
    add_board,
    add_device,
    add_runnable_build,
    add_target_device,
)
from relay_hw.runtime.given import (
    check_build,
    check_build_or_model,
    check_build_or_program,
    check_model,
    check_npz_of,
    check_text,
)
from relay_hw.target.accel.devices import DEVICES, FPGA

_COMPLETION: Final = 'bash: eval "$(relay-hw completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit'


def parser() -> ArgumentParser:
    found = Parser(
        prog="relay-hw",
        description="Compile neural networks for an accelerator, simulate them, and see where the cycles go.",
        epilog="exit status: 0 success, 1 the command found the problem it looks for, 2 bad input",
        formatter_class=RawDescriptionHelpFormatter,
    )
    from relay_hw import __version__

    found.add_argument("--version", action="version", version=f"relay-hw {__version__}")
    commands = found.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    _add_demo_command(commands)
    _add_build_commands(commands)
    _add_language_commands(commands)
    _add_inspect_commands(commands)
    _add_compare_command(commands)
    _add_explore_command(commands)
    _add_fpga_commands(commands)
    _add_mcp_command(commands)
    _add_help_commands(commands)
    return found


def _add_demo_command(commands: Any) -> None:
    text = "compile a network for handwritten digits, run it on the simulated Verilog, compare every byte"
    demo = add(commands, "demo", "demo:demo_command", text)
    text = "folder to write the network, its data and its build to (default: relay-hw-demo)"
    demo.add_argument("-o", "--output", type=arg.output_folder, default="relay-hw-demo", metavar="DIR", help=text)
    demo.add_argument("--images", type=arg.count, metavar="N", help="run the first N of 1,000 images (default: all)")
    text = "accelerator to compile for (default: default)"
    demo.add_argument("--config", type=arg.config, default="default", metavar="NAME|FILE", help=text)
    names = [kind.name for kind in DEVICES if kind.name != FPGA]
    text = "where to run (default rtl, the simulated Verilog; without a C++ compiler the functional simulator is used)"
    demo.add_argument("--device", choices=names, default=RTL, help=text)


def _add_build_commands(commands: Any) -> None:
    build = add(commands, "compile", "build:compile_command", "compile an .onnx or .relay model to a build folder")
    build.add_argument("model", type=Path, metavar="MODEL")
    build.add_argument("-o", "--output", type=arg.new_build, required=True, metavar="BUILD", help="folder to write")
    text = "accelerator (default: default, or the board's usual one)"
    build.add_argument("--config", type=arg.variant, metavar="NAME|FILE", help=text)
    text = "target to compile for (default accel, this package's accelerator); relay-hw doctor lists them"
    build.add_argument("--target", type=arg.target, metavar="NAME", help=text)
    add_board(build)
    text = "quantization strategy (default int8; float with --no-accel and no calibration data)"
    build.add_argument("--quantize", type=arg.strategy, metavar="STRATEGY", help=text)
    build.add_argument("--calibration", type=Path, metavar="DATA.npz", help="inputs by name, samples on the first axis")
    text = "run host operators by llvm, cuda, opencl or numpy (default: llvm if TVM is installed, else numpy)"
    build.add_argument("--host", metavar="KIND", help=text)
    text = (
        "machine of --host: aarch64 or a triple, mcpu=NAME, mattr=+FEATURE for llvm; sm_90 for cuda (default: this one)"
    )
    build.add_argument("--host-target", metavar="TARGET", help=text)
    text = "host that computes for a device that the program names, beside cpu (--host) and ext_dev (the accelerator)"
    build.add_argument("--machine", action="append", type=arg.machine, default=[], metavar="DEVICE=HOST", help=text)
    build.add_argument("--no-accel", action="store_true", help="run every operator on the host")
    text = "whether weights stay on the device between launches (default auto: wherever that is faster)"
    build.add_argument("--resident", choices=("auto", "off"), default="auto", help=text)
    text = "most calls of a fragment, from loops, lists, trees and samples, that one launch computes (default 1)"
    build.add_argument("--batch-calls", type=arg.count, default=1, metavar="N", help=text)
    text = "input that is a mask of ones and then zeros (padding at the end), which the accelerator takes as a length"
    build.add_argument("--prefix-mask", action="append", default=[], metavar="INPUT", help=text)
    text = "memory model that programs are optimised for (default standard)"
    build.add_argument("--memory", type=arg.memory, metavar=MEMORY, help=text)
    text = "seconds to spend searching for faster tiles on the cycle simulator (default 0: off); results are cached"
    build.add_argument("--tune", type=arg.seconds, default=0, metavar="SECONDS", help=text)
    text = "leave out the proof that programs compute what the network says: a defect of the compiler may go unseen"
    build.add_argument("--no-validate", action="store_true", help=text)

    files = {"model": check_model, "calibration": check_npz_of("calibration data")}
    build.set_defaults(files=files, check=arg.check_variant)
    _add_shapes(build)

    run = add(commands, "run", "run:run_command", "run a build on samples")
    add_runnable_build(run)
    text = "inputs by name, samples on the first axis"
    run.add_argument("--input", type=Path, required=True, metavar="DATA.npz", help=text)
    run.add_argument("--output", type=arg.output_file, metavar="OUT.npz", help="file to write the outputs to")
    run.add_argument("--samples", type=arg.count, metavar="N", help="run the first N samples only")
    text = "samples to run through each region before the next region (default: 1, on a board 16)"
    run.add_argument("--chunk", type=arg.count, metavar="N", help=text)
    text = "feed an output of each sample to an input of the next (the first: from the data, else zeros); * fits names"
    run.add_argument("--feed", action="append", type=arg.feed, default=[], metavar="OUTPUT=INPUT", help=text)
    run.add_argument(
        "--config", type=arg.config, metavar="NAME|FILE", help="accelerator to run on (default: the build's)"
    )
    text = "write a timeline of host and accelerator for Perfetto"
    run.add_argument("--trace", type=arg.output_file, metavar="FILE.json", help=text)
    run.add_argument("--waves", type=arg.output_file, metavar="FILE.fst", help="record every signal (rtl)")
    run.set_defaults(files={"build": check_build, "input": check_npz_of("input data")})
    add_target_device(run)
    add_board(run, "the build's")

    profile = add(commands, "profile", "run:profile_command", "measure cycles, utilisation and bytes by layer")
    add_runnable_build(profile)
    profile.add_argument(
        "--config", type=arg.config, metavar="NAME|FILE", help="accelerator to run on (default: the build's)"
    )
    profile.add_argument("--input", type=Path, metavar="DATA.npz", help="also time every segment on its first sample")
    profile.add_argument("--trace", type=arg.output_file, metavar="FILE.json", help="write a timeline for Perfetto")
    profile.add_argument("--waves", type=arg.output_file, metavar="FILE.fst", help="record every signal (rtl)")
    profile.set_defaults(files={"build": check_build, "input": check_npz_of("input data")})
    add_device(profile, [kind for kind in DEVICES if kind.has_exact_cycles], CYCLE)
    add_board(profile, "the build's")

    text = "write a build as C source, or an accelerator as a project for vendor tools"
    export = add(commands, "export", "build:export_command", text)
    text = "build folder to export (c), or whose accelerator configuration to use (vivado, quartus)"
    export.add_argument("build", type=Path, nargs="?", metavar="BUILD", help=text)
    export.add_argument("-o", "--output", type=arg.output_folder, required=True, metavar="DIR", help="folder to write")
    text = "c: source that runs a build without Python; vivado, quartus: project that makes a bitstream (default c)"
    export.add_argument("--form", choices=("c", "vivado", "quartus"), default="c", help=text)
    text = "board of the project: pynq-z1 or ultra96 (vivado), de10nano (quartus)"
    export.add_argument("--board", metavar="NAME", help=text)
    text = "accelerator of the project (default: the build's, else one that fits the board)"
    export.add_argument("--config", type=arg.config, metavar="NAME|FILE", help=text)
    text = "accelerator clock of the project (default: the board's)"
    export.add_argument("--clock", type=arg.megahertz, metavar="MHZ", help=text)
    text = "also synthesise the project with yosys to estimate its use of the part (minutes; the result is cached)"
    export.add_argument("--estimate", action="store_true", help=text)
    export.set_defaults(files={"build": check_build})

    verify = add(commands, "verify", "run:verify_command", "check a build's hashes, and its results byte by byte")
    add_runnable_build(verify)
    verify.add_argument("--samples", type=arg.count, default=3, metavar="N", help="random samples (default 3)")
    verify.add_argument("--seed", type=int, default=0, help="seed of the random samples (default 0)")
    verify.set_defaults(files={"build": check_build})
    add_target_device(verify)
    add_board(verify, "the build's", is_timed=False)


def _add_shapes(parser: ArgumentParser) -> None:
    text = "shape of an input with dynamic sizes in an .onnx model, such as images=1x3x320x320; may be repeated"
    parser.add_argument("--shape", action="append", type=arg.shape, default=[], metavar="INPUT=SIZEx...", help=text)
    text = "constant value of a scalar input of an .onnx model, such as sr=16000; may be repeated"
    parser.add_argument("--value", action="append", type=arg.value, default=[], metavar="INPUT=NUMBER", help=text)
    text = "change a limit on models, such as nodes=200000 (relay_hw/limits.py lists them); may be repeated"
    parser.add_argument("--limit", action="append", type=arg.limit, default=[], metavar="NAME=NUMBER", help=text)
    text = "also read weights of an .onnx model from other files in or below its folder"
    parser.add_argument("--external-data", action="store_true", help=text)
    text = "read an .onnx model in a separate process with limits on memory and time (memory_bytes, seconds)"
    parser.add_argument("--untrusted", action="store_true", help=text)


def _add_libraries(parser: ArgumentParser) -> None:
    text = "library that Relay text may use: prelude, nat, gradient or core; may be repeated"
    parser.add_argument("--import", dest="libraries", action="append", default=[], metavar="LIBRARY", help=text)


def _add_tolerant(parser: ArgumentParser) -> None:
    text = "accept the Relay text of papers, guides and older versions, and say what was repaired"
    parser.add_argument("--tolerant", action="store_true", help=text)


def _add_language_commands(commands: Any) -> None:
    evaluate = add(commands, "eval", "language:eval_command", "evaluate a function of a model with the interpreter")
    _add_evaluation(evaluate)
    evaluate.add_argument("--output", type=arg.output_file, metavar="OUT.npz", help="write the resulting tensors")

    text = "step through an evaluation, forwards and backwards; help in it lists its commands"
    _add_evaluation(add(commands, "debug", "debug:debug_command", text))

    convert = add(commands, "convert", "language:convert_command", "write a model as Relay text or as JSON")
    convert.add_argument("model", type=Path, metavar="IN", help="an .onnx, .relay, .json, .tflite or .pt2 file")
    convert.add_argument("output", type=Path, metavar="OUT", help="a .relay or .json file")
    text = "pass to run before writing, such as RewriteNumerics; may be repeated"
    convert.add_argument("--pass", dest="passes", action="append", default=[], metavar="NAME", help=text)
    convert.set_defaults(files={"model": check_text})
    _add_libraries(convert)
    _add_shapes(convert)
    _add_tolerant(convert)


def _add_evaluation(parser: ArgumentParser) -> None:
    """What evaluating a function takes."""
    parser.add_argument("file", type=Path, metavar="FILE")
    text = "an argument: a number, nested lists such as [[1, 2], [3, 4]], or a Relay expression"
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=text)
    parser.add_argument("--entry", default="main", metavar="NAME", help="function to evaluate (default main)")
    parser.add_argument("--input", type=Path, metavar="DATA.npz", help="arguments by parameter name")
    parser.set_defaults(files={"file": check_model, "input": check_npz_of("input")})
    _add_libraries(parser)
    _add_shapes(parser)


def _add_inspect_commands(commands: Any) -> None:
    check = add(commands, "check", "inspect:check_command", "type-check a model and print it, or say where it is wrong")
    check.add_argument("file", type=Path, metavar="FILE.relay")
    check.set_defaults(files={"file": check_text})
    _add_libraries(check)
    _add_shapes(check)
    _add_tolerant(check)

    show = add(
        commands, "show", "inspect:show_command", "print the Relay module of a stage of a build, or of a model file"
    )
    show.add_argument("what", type=Path, metavar="BUILD|FILE")
    show.set_defaults(files={"what": check_build_or_model})
    _add_shapes(show)
    show.add_argument("--stage", default="partitioned", help="imported, simplified, quantized or partitioned (default)")

    why = add(
        commands, "why", "why:why_command", "say where cycles are lost, what would help, and what stays on the host"
    )
    why.add_argument("build", type=Path, metavar="BUILD")
    why.set_defaults(files={"build": check_build})
    why.add_argument("--memory", type=arg.memory, metavar=MEMORY, help="memory model (default: the build's)")
    add_board(why, "the build's", is_timed=False)
    text = "change to try instead of the default ones, such as axi_data_bits=128,latency=50; may be repeated"
    why.add_argument("--change", action="append", default=[], metavar="KEY=VALUE,...", help=text)

    text = "compare two builds: matched layers, what changed, cycles gained and lost"
    diff = add(commands, "diff", "diff:diff_command", text)
    diff.add_argument("a", type=Path, metavar="A", help="a build")
    diff.add_argument("b", type=Path, metavar="B", help="another build of the same network or a similar one")
    diff.add_argument("-o", "--output", type=arg.output_file, metavar="PAGE.html", help="also write an HTML page")
    diff.set_defaults(files={"a": check_build, "b": check_build})

    disasm = add(commands, "disasm", "inspect:disasm_command", "print the programs of a build as assembly")
    disasm.add_argument("what", type=Path, metavar="BUILD|PROGRAM")
    disasm.set_defaults(files={"what": check_build_or_program})
    disasm.add_argument("--function", metavar="NAME", help="print only the program of this function")

    isa = add(commands, "isa", "inspect:isa_command", "print the instruction set")
    isa.add_argument("name", nargs="?", metavar="INSTRUCTION")

    add(commands, "doctor", "doctor:doctor_command", "say what is installed, what is missing and how to install it")


def _add_compare_command(commands: Any) -> None:
    text = "quantize a model by several strategies: accuracy beside cycles, bytes and energy"
    compare = add(commands, "compare", "compare:compare_command", text)
    compare.add_argument("model", type=Path, metavar="MODEL")
    text = "inputs by name, samples on the first axis, with labels (classes) or targets (numbers)"
    compare.add_argument("--data", type=Path, required=True, metavar="TEST.npz", help=text)
    text = "inputs by name, to calibrate ranges and to choose the best strategy on"
    compare.add_argument("--calibration", type=Path, metavar="DATA.npz", help=text)
    text = "strategy names or .toml files, separated by commas; may be repeated"
    compare.add_argument(
        "--strategies", action="append", type=arg.strategies, required=True, metavar="NAME,...", help=text
    )
    text = "folder for report.html, report.csv and report.json; finished strategies are cached in its folder work"
    compare.add_argument("-o", "--output", type=arg.output_folder, required=True, metavar="REPORT", help=text)
    data = {"data": check_npz_of("test data"), "calibration": check_npz_of("calibration data")}
    compare.set_defaults(files={"model": check_model, **data})
    _add_shapes(compare)
    compare.add_argument("--images", type=arg.count, metavar="N", help="use the first N samples of the test data only")
    text = "accelerators to compile for, separated by commas (default: default, and w4 for 4-bit weights)"
    compare.add_argument("--config", type=arg.configs, metavar="NAME|FILE,...", help=text)
    text = "other targets beside the accelerator, separated by commas: what they run, and its instructions"
    compare.add_argument("--target", type=arg.targets, default=[], metavar="NAME[:CONFIG],...", help=text)
    text = "compile for this board, by default with every configuration that runs on it; adds inferences per second"
    compare.add_argument("--board", type=arg.board, metavar="NAME", help=text)
    text = "add N mixes of 4- and 8-bit layers for each accelerator, from fewest cycles to least noise"
    compare.add_argument("--mixed", type=arg.count, default=0, metavar="N", help=text)
    compare.add_argument("--name", metavar="OUTPUT", help="output to compare (default: the first)")
    compare.add_argument("--unlabelled", action="store_true", help="compare with the float model only, ignore labels")
    text = "show the distributions of these layers only; may be repeated"
    compare.add_argument("--layers", action="append", default=[], metavar="LAYER,...", help=text)
    compare.add_argument("--area", action="store_true", help="add LUTs and multipliers from synthesis results")
    text = "what evaluates the integer model (default auto: TVM for many samples, if installed)"
    compare.add_argument("--engine", choices=ENGINES, default="auto", help=text)
    _add_workers(compare)


def _add_workers(command: Any) -> None:
    """Options of commands that share their work among processes."""
    text = "processes on this machine (default: one per core with relay-hw[explore], else 1)"
    command.add_argument("--processes", type=arg.count, metavar="N", help=text)
    text = "Dask scheduler to use instead, tls:// or tcp://HOST:PORT; its workers run any code that they are sent"
    command.add_argument("--scheduler", metavar="ADDRESS", help=text)


def _add_mcp_command(commands: Any) -> None:
    text = "answer assistants over the Model Context Protocol: compile, where cycles go, what would help"
    mcp = add(commands, "mcp", "mcp:mcp_command", text)
    text = "folder with models and builds; nothing outside of it is read or written (default: the current one)"
    mcp.add_argument("folder", type=Path, nargs="?", default=Path(), metavar="FOLDER", help=text)


def _add_explore_command(commands: Any) -> None:
    text = "compile a model for many accelerators and find the Pareto front of cycles, area and energy"
    explore = add(commands, "explore", "explore:explore_command", text)
    explore.add_argument("model", type=Path, nargs="?", metavar="MODEL")
    text = "folder for explore.html, explore.csv and explore.json; measurements are cached in its folder work"
    explore.add_argument("-o", "--output", type=arg.output_folder, required=True, metavar="REPORT", help=text)
    text = (
        "parameter to vary: a size of the configuration, latency, memory_reads, memory_writes, memory, strategy, "
        "resident or clock (MHz); a range goes up by doubling, such as wgt_depth=256..2048; may be repeated "
        "(default: blocks, output lanes, large scratchpads, bus)"
    )
    explore.add_argument("--axis", action="append", type=arg.axis, default=[], metavar="NAME=VALUE,...", help=text)
    text = "configuration whose other sizes are used (default: default, or the board's default one)"
    explore.add_argument("--config", type=arg.config, metavar="NAME|FILE", help=text)
    text = "quantization strategy, unless it is an axis (default int8)"
    explore.add_argument("--quantize", type=arg.strategy, default="int8", metavar="STRATEGY", help=text)
    text = "inputs by name, samples on the first axis"
    explore.add_argument("--calibration", type=Path, metavar="DATA.npz", help=text)
    text = "inputs by name with labels: adds the accuracy of each strategy"
    explore.add_argument("--data", type=Path, metavar="TEST.npz", help=text)
    explore.add_argument("--images", type=arg.count, metavar="N", help="use the first N samples of the test data only")
    explore.add_argument("--name", metavar="OUTPUT", help="output whose accuracy counts (default: the first)")
    text = "memory model (default standard)"
    explore.add_argument("--memory", type=arg.memory, metavar=MEMORY, help=text)
    text = "use the memory and part of this board"
    explore.add_argument("--board", type=arg.board, metavar="NAME", help=text)
    text = "FPGA part that points must fit (default: the board's, else lfe5u-85f)"
    explore.add_argument("--part", type=arg.part, metavar="NAME", help=text)
    text = "clock assumed for milliseconds; whether a design meets it is not checked"
    explore.add_argument("--clock", type=arg.megahertz, metavar="MHZ", help=text)
    text = (
        "any of cycles, ms, area, luts, block_rams, multipliers, energy, dram, accuracy (default: time, area, energy)"
    )
    explore.add_argument("--objectives", type=arg.objectives, metavar="NAME,...", help=text)
    text = "grid: all points; random; smart: neighbours of the front (default: grid, or smart for more than --points)"
    explore.add_argument("--search", type=arg.search, metavar="HOW", help=text)
    text = "points to measure in a random or smart search (default 500)"
    explore.add_argument("--points", type=arg.count, default=500, metavar="N", help=text)
    explore.add_argument("--seed", type=int, default=0, help="seed of the search (default 0)")
    text = "also measure points whose lower bounds show that they cannot be on the front"
    explore.add_argument("--all", action="store_true", help=text)
    _add_workers(explore)
    text = "write the configuration file of point N into REPORT; without MODEL, read a finished exploration there"
    explore.add_argument("--apply", type=arg.natural, metavar="N", help=text)
    data = {"data": check_npz_of("test data"), "calibration": check_npz_of("calibration data")}
    explore.set_defaults(files={"model": check_model, **data})
    _add_shapes(explore)


def _add_fpga_commands(commands: Any) -> None:
    text = "make an FPGA bitstream of the accelerator with yosys and nextpnr"
    parser = add(commands, "bitstream", "fpga:bitstream_command", text)
    target = parser.add_mutually_exclusive_group(required=True)
    text = "a bare part with block RAM as memory: lfe5u-25f, lfe5u-45f, lfe5u-85f, gw2a-18c or gw5ast-138c"
    target.add_argument("--part", type=arg.part, metavar="NAME", help=text)
    text = "a board with its own memory and host link: ulx3s-85f or colorlight-i5"
    target.add_argument("--board", type=arg.board, metavar="NAME", help=text)
    parser.add_argument(
        "--config", type=arg.config, default="tiny", metavar="NAME|FILE", help="accelerator (default: tiny)"
    )
    text = "target clock (default: 25 for a part, else the board's)"
    parser.add_argument("--clock", type=arg.megahertz, metavar="MHZ", help=text)
    text = "size of a part's block RAM memory, a power of two (default 8)"
    parser.add_argument("--memory-kib", type=arg.count, metavar="N", help=text)
    parser.add_argument(
        "--baud",
        type=arg.count,
        metavar="N",
        help="speed of the serial link (default: 1000000 for a part, else the board's)",
    )
    parser.add_argument(
        "--seed", type=arg.count, default=1, metavar="N", help="seed of floorplan and placement (default: 1)"
    )
    text = "number of consecutive seeds to place with; the fastest result is kept (default: 1)"
    parser.add_argument("--seeds", type=arg.count, default=1, metavar="N", help=text)
    text = "first simulate the accelerator's netlist with the self-test and N random programs (minutes)"
    parser.add_argument("--programs", type=arg.count, default=None, metavar="N", help=text)
    parser.add_argument("-o", "--output", type=arg.output_folder, required=True, metavar="OUT", help="folder to write")

    text = "test a device: registers, memory, random programs, counters, faults"
    test = add(commands, "selftest", "fpga:selftest_command", text)
    text = "accelerator (default: the bitstream's with fpga, else tiny)"
    test.add_argument("--config", type=arg.config, metavar="NAME|FILE", help=text)
    text = "random programs, each run twice (default 20)"
    test.add_argument("--programs", type=arg.count, default=20, metavar="N", help=text)
    test.add_argument("--seed", type=int, default=0, help="seed of programs and patterns (default 0)")
    text = "write the findings as JSON, to attach to a bug report"
    test.add_argument("-o", "--output", type=arg.output_file, metavar="FILE.json", help=text)
    add_device(test, DEVICES, FPGA)


def _add_help_commands(commands: Any) -> None:
    text = "list the names that options take: configs, strategies, boards, memories, targets or devices"
    names = add(commands, "list", "catalogue:list_command", text)
    names.add_argument("kind", choices=KINDS, metavar="KIND", help=f"one of {', '.join(KINDS)}")

    text = "print a script by which a shell completes commands, options, names and files"
    complete = add(commands, "completion", "completion:completion_command", text)
    complete.add_argument("shell", choices=("bash", "zsh"), metavar="SHELL", help="bash or zsh")
    complete.epilog = f"{complete.epilog}\n\n{_COMPLETION}"
