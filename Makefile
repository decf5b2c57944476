# relay-hw. `make` lists the targets; each makes .venv and installs what it needs from PyPI by itself.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: $(shell awk -F ':' '/^[a-z0-9-]+:/ { print $$1 }' $(lastword $(MAKEFILE_LIST)))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install everything

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "Python must be 3.10 to 3.13, not $$($(PYTHON) --version 2>&1): call make PYTHON=python3.11"; exit 2; }
	@command -v g++ >/dev/null || echo "g++ is missing: install it (Debian: apt-get install g++) to simulate the RTL"
	@command -v perl >/dev/null || echo "perl is missing: install it (Debian: apt-get install perl) to simulate the RTL"
	$(PYTHON) -m venv $(VENV)
	@# What builds packages from source comes first, so that nothing without a hash in the lock file is fetched for it.
	@awk '/^(setuptools|wheel)==/, !/\\$$/' requirements.lock > $(VENV)/first.lock
	$(PIP) --require-hashes --no-deps -r $(VENV)/first.lock
	$(PIP) --require-hashes --no-deps --no-build-isolation -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## handwritten digits from ONNX to Verilog, bit for bit (FLAGS="--images 100" for fewer)
	$(BIN)/relay-hw demo -o build/demo $(FLAGS)

compare-demo: $(READY) ## quantization strategies on the demo's digits: build/compare/report.html (FLAGS="--images 100" for a look)
	@test -f build/data/mnist_test.npz || $(BIN)/python scripts/make_data.py
	$(BIN)/relay-hw compare examples/mnist_cnn.onnx --data build/data/mnist_test.npz \
	  --calibration build/data/mnist_calibration.npz -o build/compare \
	  --strategies int8,int8-minmax,int8-kl,int8-mse,int8-pow2,w4a8,w4a8-gptq,mixed,tvm,mxfp4 $(FLAGS)

data: $(READY) ## write build/data/mnist_calibration.npz and mnist_test.npz
	$(BIN)/python scripts/make_data.py

test: $(READY) ## run the test suite
	$(BIN)/python -m pytest -q -n 3 --dist worksteal $(FLAGS)

check: $(READY) ## within two minutes: tests that today's change touches, a sample of every room (FLAGS="--since COMMIT")
	$(BIN)/python scripts/check.py $(FLAGS)

fuzz: $(READY) ## mutated and made-up inputs for each of 12 entry points (FLAGS="--entry text --inputs 500"), goes on where it was ended
	$(BIN)/python scripts/fuzz.py $(FLAGS)

conformance: $(READY) ## onnx's node tests through importer and interpreter, write docs/onnx.md (FLAGS=--host=llvm: compiled)
	$(BIN)/python scripts/conformance.py --write $(FLAGS)

test-scaling: $(READY) ## time of every reader against the size of what it reads: text to 4 MB, bytes to 64 MB (FLAGS="--seconds 2": sooner)
	$(BIN)/python scripts/scaling.py $(FLAGS)

test-under-load: $(READY) ## tests with signals or time, 20 times beside four busy processes (half an hour)
	$(BIN)/python -m pytest -q -s -m long tests/house/test_under_load.py $(FLAGS)

test-schedule-mutants: $(READY) ## mistakes of a scheduler in programs of every layer and configuration: refused before they run (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/schedule_mutants $(FLAGS)

test-networks: $(READY) ## every network of examples/models on every device, small architectures on every configuration (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/networks/test_networks.py tests/networks/test_architectures.py tests/networks/test_text.py $(FLAGS)

test-proofs: $(READY) ## every network of examples/models, small, on every configuration: programs proved (many minutes)
	$(BIN)/python -m pytest -q -s -m long tests/networks/test_proofs.py $(FLAGS)

test-random-networks: $(READY) ## 500 drawn networks on drawn hardware: onnxruntime, interpreter, simulators, Verilog; 500 more are proved (many minutes)
	$(BIN)/python -m pytest -q -s -m long tests/networks/test_random.py $(FLAGS)

test-gradients: $(READY) ## 300 drawn programs: slopes against dual numbers, to the second order, and small steps (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/transform/test_gradient.py $(FLAGS)

test-training: $(READY) ## figure 4 of the first Relay paper: train, export, compile, run; a loop over the rows of digits (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/examples/test_python_examples.py $(FLAGS)

test-notebooks: $(READY) ## execute every notebook of examples/notebooks (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/examples/test_notebooks.py $(FLAGS)

test-executions: $(READY) ## 2,000 programs through each pass: nothing is executed more often (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/transform/test_executions.py $(FLAGS)

test-numerics: $(READY) ## bits of error of published expressions before and after RewriteNumerics (a minute)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/transform/test_rewrite_numerics.py $(FLAGS)

test-rows: $(READY) ## a million rows through integer softmax and norms, beside the real ones (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/op/test_rows.py $(FLAGS)

test-names: $(READY) ## 200 names of strangers through every command and the exported C (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/cli/test_hostile_names.py \
	  tests/relay_hw/runtime/test_hostile_export.py $(FLAGS)

test-kill: $(READY) ## kill -9 compile, run, compare and builds of the RTL at any moment: nothing lost, nothing left (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/cli/test_kill.py tests/relay_hw/runtime/test_faults.py $(FLAGS)

test-flips: $(READY) ## 1,000 wrong bits in builds and in each kind of kept result: refused or made again (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/accel/test_flips.py tests/relay_hw/runtime/test_flips.py $(FLAGS)

test-rebuild: $(READY) ## builds, C, inputs of tools in two folders, with two hash seeds (OTHER_PYTHON=: two Pythons), to the byte
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/runtime/test_rebuild.py $(FLAGS)

test-compare: $(READY) ## 20 images of every strategy on interpreter, TVM, functional simulator and Verilog (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/compare $(FLAGS)

test-explore: $(READY) ## explorations of ResNet-8: ten points against the Verilog, fronts, a point to synthesis; kills (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/explore $(FLAGS)

measure-mixed: $(READY) ## mixed fronts against uniform strategies on ../shared/models: docs/results/mixed.json (an hour)
	$(BIN)/python scripts/measure_mixed.py $(FLAGS)

measure-methods: $(READY) ## strategies on two MobileNets, the second one trained first, and training: docs/results/methods.json (an hour)
	$(BIN)/python scripts/train_mobilenet.py
	$(BIN)/python scripts/measure_methods.py $(FLAGS)

measure-trained: $(READY) ## the trained transformers of examples/ in integers: docs/results/trained.json (minutes)
	$(BIN)/python scripts/measure_trained.py $(FLAGS)

docs: $(READY) ## the documents as a site that needs no network: build/site/index.html
	$(BIN)/python -m sphinx --fresh-env --fail-on-warning --keep-going --quiet -c docs . build/site
	@echo "build/site/index.html is ready"

images: data ## draw the picture of README.md from a build: docs/images/cycles.svg
	$(BIN)/relay-hw compile examples/mnist_cnn.onnx --calibration build/data/mnist_calibration.npz -o build/images
	$(BIN)/python scripts/picture.py build/images

test-docs: $(READY) ## every figure that a simulator can measure anew, every command of the documents and of --help (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/docs tests/relay_hw/cli/test_examples.py $(FLAGS)

test-prequantized: $(READY) ## int8 models of ../shared/models on functional simulator and Verilog, against onnxruntime (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/quantize/test_prequantized.py $(FLAGS)

test-exact: $(READY) ## random programs, configurations, counterfactuals and bounds, cycle simulator against Verilog, proofs of its two forms (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/accel/sim/test_exact.py tests/accel/rtl/test_forms.py tests/relay_hw/runtime/test_why.py tests/relay_hw/target/accel/test_bounds.py tests/tensorize/test_configs.py $(FLAGS)

test-benches: $(READY) ## every bench of a Verilog module, in every shape, with 25 seeds (minutes)
	$(BIN)/python -m pytest -q -s -m long -n 2 tests/accel/rtl/test_benches.py $(FLAGS)

test-cost: $(READY) ## recipes of CONTRIBUTING.md on a copy of the sources: files counted, changes tested, one operation in Verilog (minutes)
	$(BIN)/python -m pytest -q -s -m "long or not long" tests/cost_of_change $(FLAGS)

test-vta: $(READY) ## ResNet-18 for three VTAs on their simulator against the interpreter (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/vta $(FLAGS)

test-axi: $(READY) ## random programs on memories that order, delay, refuse or never end what AXI lets them (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/accel/sim/test_axi.py $(FLAGS)

test-power-on: $(READY) ## 1,000 random starts, 200 resets in mid-run, 50 programs in four states (Debian: iverilog) (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/accel/sim/test_power_on.py $(FLAGS)

test-mutants: $(READY) ## hundreds of changes of the Verilog, one at a time: tests, properties or a proof must tell (minutes)
	$(BIN)/python scripts/mutants.py $(FLAGS)
	$(BIN)/python -m pytest -q -s -m long tests/mutants

test-steady: $(READY) ## 31 networks of three regions or more: one figure whoever shows it, what stays on the device gains by it (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/target/accel/test_steady.py tests/relay_hw/target/accel/test_regions.py $(FLAGS)

test-schedules: $(READY) ## choices of tiles against the best of all legal ones, write build/schedules.json (minutes)
	$(BIN)/python scripts/check_schedules.py $(FLAGS)

test-cycles: $(READY) ## cycles of every network against scripts/cycles.json (FLAGS=--time: and seconds of compiling), many minutes
	$(BIN)/python scripts/bench_compile.py $(FLAGS)

lint: format types rtl-lint formal-quick gen ## check style, types, Verilog, its quick proofs and generated files

format: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/basedpyright --level error --pythonpath $(BIN)/python
	@# The example stands for scripts of users, who may have the other checker.
	$(BIN)/mypy --strict --follow-imports=silent --no-error-summary --cache-dir build/mypy examples/digits.py

rtl-lint: $(READY)
	$(BIN)/python scripts/lint_rtl.py

formal: $(READY) ## prove every property of the Verilog's modules, and that mistakes in them are found (minutes)
	$(BIN)/python scripts/formal.py $(FLAGS)
	$(BIN)/python -m pytest -q -s -m long tests/accel/rtl/test_properties.py

formal-quick: $(READY)
	$(BIN)/python scripts/formal.py --quick

gen: $(READY)
	$(BIN)/python scripts/gen.py --check

aarch64: $(READY) ## fetch what runs aarch64 host libraries in the tests: qemu-user, TVM's runtime, a linker
	$(BIN)/python scripts/fetch_aarch64.py

test-deploy: $(READY) ## exported C for aarch64 under qemu-user, after `make aarch64` (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/relay_hw/runtime/test_deploy.py tests/relay_hw/runtime/test_deploy_control.py $(FLAGS)

energy: $(READY) ## what switches on netlists beside the energy table: docs/results/energy.json (an hour; FLAGS=--keep goes on)
	$(BIN)/python scripts/measure_energy.py $(FLAGS)
	$(BIN)/python scripts/energy_fit.py --write

bench: $(READY) ## measure cycles, speeds and the language, write docs/results/performance.json and docs/performance.md (minutes)
	$(BIN)/python scripts/bench.py

test-board: $(READY) ## networks on the whole SoC of a board with `ecp5`, its serial line at its own speed, --board against both (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/accel/fpga/test_board_soc.py tests/accel/fpga/test_part.py \
	  tests/accel/fpga/vendor/test_project.py tests/accel/fpga/vendor/test_serve.py tests/relay_hw/cli/test_board.py \
	  tests/relay_hw/runtime/test_speed.py $(FLAGS)

test-netlist: $(READY) ## `tiny` placed and routed, programs and the self-test on netlists, estimates for other parts (half an hour)
	$(BIN)/python -m pytest -q -s -m long tests/accel/fpga/test_tiny.py tests/accel/fpga/sim/test_netlist.py \
	  tests/accel/fpga/sim/test_activity.py tests/accel/fpga/vendor $(FLAGS)

bitstreams: $(READY) ## bitstreams of all boards with their hashes, to be given away: dist/bitstreams (hours; FLAGS="--only NAME")
	$(BIN)/python scripts/release_bitstreams.py $(FLAGS)

area: $(READY) ## count LUTs, flip-flops, multipliers and block RAMs of each configuration on ECP5 (long)
	$(BIN)/python scripts/area.py $(FLAGS)

area-points: $(READY) ## synthesise what the area model is fitted to, and fit it: docs/results/area_points.json (hours)
	$(BIN)/python scripts/area_points.py $(FLAGS)

lock: ## renew requirements.lock and scripts/aarch64.lock, versions and hashes, by uv (pip install uv)
	printf 'setuptools>=77\nwheel\n' | uv pip compile --quiet --upgrade --universal --python-version 3.10 --no-header \
	  --generate-hashes --no-annotate --extra test --extra lint --extra fpga \
	  --extra explore --extra mcp --extra docs --extra notebooks -o requirements.lock pyproject.toml -
	echo ziglang | uv pip compile --quiet --upgrade --universal --python-version 3.10 --no-header --generate-hashes \
	  --no-annotate -o scripts/aarch64.lock -

wheel: $(READY) ## build dist/relay_hw-*.tar.gz, and dist/relay_hw-*.whl from it
	$(BIN)/python -m build --no-isolation --outdir dist

test-wheel: $(READY) ## the wheel from a registry into a fresh environment: megabytes, seconds to the first results (minutes)
	$(BIN)/python -m pytest -q -s -m long tests/e2e/test_wheel.py $(FLAGS)

clean: ## remove .venv and everything built
	rm -rf $(VENV) build dist *.egg-info
