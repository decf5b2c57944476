"""`python -m examples.models NAME -o FILE`: write a network with seeded weights, and images for it.

In: a name, an output file. Out: an .onnx file, and with `--images N` an .npz file beside it; without a name, a table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.models import NETWORKS, TRANSFORMERS, Example, find
from examples.models.samples import samples
from relay_hw.cli.data import save_npz


def write(example: Example, path: Path, size: int | None = None, seed: int = 0, count: int = 0) -> None:
    """Write the model to `path` and `count` images to the .npz file beside it. Raises ValueError, OSError."""
    if count < 0:
        raise ValueError(f"images must be at least 0, not {count}")
    model = example.model(size, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))
    print(f"{path}: {path.stat().st_size:,} bytes")
    if count:
        arrays = samples(model, count, seed)
        data = path.with_suffix(".npz")
        save_npz(data, arrays)
        print(f"{data}: {count} samples of {', '.join('x'.join(map(str, one.shape[1:])) for one in arrays.values())}")


def listing() -> str:
    """A line for each network."""
    header = f"{'name':18}{'input':>12}{'output':>10}{'MACs':>16}  about"
    rows = [f"{e.name:18}{e.input:>12}{e.output:>10}{e.macs:16,}  {e.about}" for e in (*NETWORKS, *TRANSFORMERS)]
    return "\n".join([header, *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m examples.models", description=__doc__)
    parser.add_argument("name", nargs="?", help="network; without it, all are listed")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: build/models/NAME.onnx)")
    parser.add_argument(
        "--size", type=int, help="height and width of the input, or its tokens, instead of the published ones"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and images (default: 0)")
    parser.add_argument(
        "--images",
        type=int,
        default=0,
        metavar="N",
        help="write N random images, or inputs of other kinds, beside the model",
    )
    args = parser.parse_args(arguments)
    if args.name is None:
        print(listing())
        return 0
    path = args.output or Path("build") / "models" / f"{args.name}.onnx"
    try:
        write(find(args.name), path, args.size, args.seed, args.images)
    except (OSError, ValueError) as error:
        print(f"examples.models: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
