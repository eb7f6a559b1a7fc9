"""Training: jobs (`job`), strategies (`strategies`), software stacks (`stack`), and the driver of jobs (`driver`).

The processes of a strategy are in `data` (every device has the whole model), `servers` (parameter servers) and
`sharded` (every device has a part); `failures` is about long jobs on machines that fail.
"""
