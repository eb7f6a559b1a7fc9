"""A real cluster in one box: hosts that are network namespaces, links that the kernel shapes, real torch on top."""
