# Everything a developer or a CI job needs. `make help` lists the targets.
# A file local.mk, which git ignores, may set the variables below.
-include local.mk

PYTHON ?= python3
EDITABLE := build/editable
# 1: warnings of the C++ compiler are errors. A build stays what it is until it is told otherwise.
BUILT_DEV := $(shell sed -n 's/^PMSIM_DEV:[A-Z]*=//p' $(EDITABLE)/CMakeCache.txt 2>/dev/null)
DEV ?= $(or $(BUILT_DEV),0)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

VENV := .venv
PY := $(VENV)/bin/python
# Tools that the machine lacks (cmake, ninja) are installed in the environment.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
# Tests start Python hundreds of times: each start would compile the package again, and have BLAS wait on all cores.
export PYTHONDONTWRITEBYTECODE :=
export OPENBLAS_NUM_THREADS ?= 1

# Two terminals may say `make` at once; pip does not like that.
LOCK := $(if $(shell command -v flock),flock .venv.lock)
PIP := $(LOCK) $(PY) -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --no-build-isolation \
  -C cmake.define.PMSIM_TESTS=ON -C cmake.define.PMSIM_DEV=$(DEV)

NATIVE := $(shell find native -name '*.[ch]pp' -not -path 'native/tests/*') native/CMakeLists.txt

.DEFAULT_GOAL := help
.PHONY: FORCE help build demo test test-env test-native test-python test-sanitize lint format stubs docs bench clean

help:
	@sed -n 's/^## //p' Makefile

$(VENV)/stamp-venv:
	@sh scripts/make_venv.sh $(PYTHON) $(VENV)
	@touch $@

# Without the stamp a build that fails is begun again, whatever was asked for.
$(VENV)/stamp-build: $(VENV)/stamp-venv pyproject.toml $(NATIVE) $(if $(filter-out $(BUILT_DEV),$(DEV)),FORCE)
	@echo "building the core (some minutes) and installing pmsim into $(VENV)"
	@rm -f $@
	@touch $@.started
	@$(INSTALL) --editable .
	@mv $@.started $@  # keeps its time: a source edited meanwhile is newer

# The extras come after the build, which their installation would repeat.
$(VENV)/stamp-test: pyproject.toml | $(VENV)/stamp-build
	@$(INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/stamp-dev: pyproject.toml | $(VENV)/stamp-build
	@$(INSTALL) --editable '.[dev]'
	@touch $@

## make build          .venv with the package, editable, and its compiled core
build: $(VENV)/stamp-build

## make demo           simulate the quickstart scenario and say where its report is
demo: build
	@$(VENV)/bin/pmsim run quickstart --out out/quickstart
	@echo "The figure, with the measured values: $(CURDIR)/out/quickstart/report.html"

## make test           native tests (where GoogleTest is found), Python tests, notebooks
test: test-native test-python

## make test-env       what single tests need: pytest and, where GoogleTest is found, build/editable/pmsim_tests
test-env: build $(VENV)/stamp-test
	@sh scripts/native_tests.sh $(EDITABLE) build

test-native: build
	@sh scripts/native_tests.sh $(EDITABLE)

test-python: build $(VENV)/stamp-test
	@$(PY) -m pytest --numprocesses $(JOBS) --dist worksteal

## make test-sanitize  native tests under the address and undefined-behaviour sanitizers
test-sanitize: $(VENV)/stamp-venv
	@cmake -S native -B build/sanitize -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPMSIM_BINDINGS=OFF \
	  -DPMSIM_TESTS=ON -DPMSIM_DEV=ON -DPMSIM_SANITIZE=ON \
	  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
	  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"
	@sh scripts/native_tests.sh build/sanitize

## make lint           ruff, mypy --strict, clang-format; changes nothing
lint: $(VENV)/stamp-dev
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@find native -name '*.[ch]pp' | xargs $(VENV)/bin/clang-format --dry-run --Werror

## make format         what lint asks for
format: $(VENV)/stamp-dev
	@$(VENV)/bin/ruff check --fix --quiet .
	@$(VENV)/bin/ruff format --quiet .
	@find native -name '*.[ch]pp' | xargs $(VENV)/bin/clang-format -i

## make stubs          regenerate pmsim/_native.pyi
stubs: $(VENV)/stamp-test
	@$(PY) scripts/generate_stubs.py

## make docs           regenerate docs/model/parameters.md
docs: build
	@$(PY) scripts/generate_parameter_docs.py

## make bench          speed of pmsim itself
bench: build
	@$(PY) benchmarks/run.py

## make clean          remove what make has made
clean:
	rm -rf $(VENV) .venv.lock build out
