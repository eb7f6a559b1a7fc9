"""Measuring a machine with torch: one module a family of series; torch is imported only when something is measured.

Series and their conditions (every quantity in SI units; readings in s unless `Measurement.unit` says otherwise):

``frontend/<operation>`` (t1)
    Time of the host for one call on tiny tensors; `pass`: ``"plain"``, ``"forward"`` (recorded for autograd),
    ``"backward"``.
``frontend/mixed``
    A call in a step of many layers, after `touched` bytes went through the caches; `pass` as above, or ``"update"``
    (all of it).
``op/<kernel family>`` (t2)
    One operation alone; its amounts are those of `simperf.workload.Op`, see `simperf.calibrate.measure.conditions`.
    `cache` says whether its operands were used just before (``"warm"``) or must come from memory (``"cold"``).
``sync/synchronize``, ``sync/item`` (t3)
    Waiting for a device that is idle; and fetching one number from it.
``queue/launch``, ``queue/depth`` [launches]
    Time of the n-th launch behind a busy device; where launches begin to block.
``streams/concurrent``, ``graph/replay``, ``fused/<what>``
    Small kernels over `streams`; `nodes` of a captured graph; `mode` eager, scripted or compiled.
``copy/<kind>``
    h2d-pinned, h2d-pageable, d2h-pinned, d2h-pageable, d2d, peer, host, fresh (writing memory never touched): `nbytes`.
``overlap/copy-compute``
    `part`: ``"copy"`` or ``"compute"`` alone; of both beside each other the end of all (``"both"``), of the copy
    (``"copy-beside"``) and of the kernels (``"compute-beside"``). `beside`: ``"gemm"`` or ``"memory"``.
``<collective>/<backend>``
    Such as ``all-reduce/gloo``: `nbytes`, `ranks`.
``loader/batch``, ``storage/write``, ``storage/read``
    A batch from a DataLoader of `workers`; a temporary file of `nbytes`.
``step/<model of the zoo>``
    Whole training steps: `batch`, `optimizer`, `part` (``"step"``, ``"forward"``, ``"backward"``, ``"update"``).
    Held out: no constant is fitted to them.
``program/<name>``
    Short programs on a GPU, whole (`part`: ``"whole"``, or ``"issued"`` when the host has launched everything); the
    other conditions are the parameters of `simperf.calibrate.programs`. Held out.
"""
