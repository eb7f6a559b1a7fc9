#!/usr/bin/env bash
# Lint, types, layers, then every test; the README's test command ends in this.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check simperf tests docs/*.py docs/lessons
ruff format --check simperf tests docs/*.py docs/lessons
mypy
lint-imports
python -m pytest "$@"
