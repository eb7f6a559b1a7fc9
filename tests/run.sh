#!/usr/bin/env bash
# Lint, types, layers, then every test; the README's test command ends in this.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
mypy
lint-imports
python -m pytest "$@"
