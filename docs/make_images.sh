#!/usr/bin/env bash
# Draws the pictures of the README and the docs anew.
set -euo pipefail
cd "$(dirname "$0")/.."
simperf run d2l/copy-overlap --plot docs/images/copy-overlap.svg > /dev/null
simperf compare d2l/sync-160mb --plot docs/images/sync-160mb.svg > /dev/null
simperf topo dgx-1v --plot docs/images/dgx-1v.svg > /dev/null
python docs/collective_scale.py docs/images/collective-scale.svg > /dev/null
if [ -n "${SIMPERF_TRUTH:-}" ]; then  # of measured data, which is not part of the project
  simperf accuracy --format markdown -o docs/accuracy.md --plot docs/images/accuracy.svg > /dev/null
fi
