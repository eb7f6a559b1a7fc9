"""Recorded training steps: traces of torch's profiler as programs of a host and the streams of a GPU.

`trace_file` reads what a trace says, `causes` finds what waited for what and makes a `recorded_step` of it,
`kernel_class` what each kernel computes or moves.
"""
