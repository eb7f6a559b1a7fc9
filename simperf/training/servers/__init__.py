"""Parameter servers: workers push gradients and pull weights, and keys live on servers."""
