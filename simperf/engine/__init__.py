"""Time, queues and sharing: the simulated machine at work."""
