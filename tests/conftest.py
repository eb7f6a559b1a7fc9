"""What holds for all tests."""

import signal

# A shell that starts a run in the background has it and its children ignore interrupts: no test of one could end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
