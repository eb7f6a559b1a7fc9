"""Many runs: what they say together."""

from simperf.study.accuracy import LedgerRow, ledger

__all__ = ["LedgerRow", "ledger"]
