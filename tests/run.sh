#!/usr/bin/env bash
# Lint, types, layers, then every test; the README's test command ends in this.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check simperf tests
ruff format --check simperf tests
mypy
lint-imports
python -m pytest "$@"
