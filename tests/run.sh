#!/usr/bin/env bash
# Lint, spelling, types, layers, circular imports, then every test in two processes; the README's test command ends in this.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check simperf tests docs/*.py docs/lessons
ruff format --check simperf tests docs/*.py docs/lessons
codespell *.md docs simperf scenarios calibration # `[tool.codespell]` of pyproject.toml says which words are names
mypy & # on the second core
types=$!
trap 'kill "$types" 2>/dev/null || true' EXIT
lint-imports
python -m tests.architecture # no circular imports, no long signatures, one meaning a class name
python -m pytest -n 2 "$@" # tests/conftest.py says which tests one process runs
wait "$types"
