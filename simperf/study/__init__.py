"""Many runs: what they say together."""
