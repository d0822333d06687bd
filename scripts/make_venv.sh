#!/bin/sh
# make_venv.sh PYTHON DIRECTORY: a virtual environment with what building pmsim needs.
set -eu
python=$1
venv=$2

command -v "$python" >/dev/null || { echo "pmsim needs Python 3.11 or newer: $python is not installed" >&2; exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "pmsim needs Python 3.11 or newer, $python is older; try: make PYTHON=python3.12" >&2
  exit 1
}
# Debian and Ubuntu ship Python without these two unless asked.
"$python" -c 'import venv, ensurepip' 2>/dev/null || {
  echo "$python cannot create virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2
  exit 1
}
# The same for the header that the extension is compiled against.
"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || {
  echo "the C headers of $python are missing; on Debian and Ubuntu: apt install python3-dev" >&2
  exit 1
}
command -v "${CXX:-c++}" >/dev/null || { echo "pmsim needs a C++20 compiler: none found (set CXX)" >&2; exit 1; }

echo "creating $venv"
"$python" -m venv "$venv"
build_requirements='import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])'
requirements=$("$python" -c "$build_requirements")
for tool in cmake ninja; do
  command -v "$tool" >/dev/null || requirements="$requirements $tool"
done
# Word splitting is meant.
# shellcheck disable=SC2086
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check $requirements
