"""Faults: disks that are full, requests to end, processes that die, systems that lack modules."""
