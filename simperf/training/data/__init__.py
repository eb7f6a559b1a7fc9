"""Data parallelism: every device has the whole model, and gradients or weights are averaged."""
