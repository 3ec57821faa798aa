#!/bin/sh
# usage: validator.sh OPTIONS     solana-test-validator at a lower priority than the tests beside it
#
# An idle validator keeps more than a core busy. Linux shares the cores among sessions first and asks
# for the nice value within each, so the session of the validator gets one as well.
if [ -w /proc/self/autogroup ]; then
  echo 5 >/proc/self/autogroup || true
fi
exec nice -n 5 "${TROTH_VALIDATOR:-solana-test-validator}" "$@"
