#!/usr/bin/env bash
# Every text that scripts/mutation-test.sh breaks is still in its file exactly once.
exec bash "$(dirname "${BASH_SOURCE[0]}")/../scripts/mutation-test.sh" --check
