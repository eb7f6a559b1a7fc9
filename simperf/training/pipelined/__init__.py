"""Training with tensor, pipeline and data parallelism: each stage of the pipeline is a process."""
