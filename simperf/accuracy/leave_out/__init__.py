"""Leave-one-architecture-out errors: GPUs predicted as if nobody had measured their architecture."""
