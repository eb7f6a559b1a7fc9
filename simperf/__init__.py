"""simperf."""
