"""Measurements that people already have: logs of nccl-tests, traces of torch's profiler, tables."""

from simperf.calibrate.importers.files import import_file, import_files
from simperf.calibrate.importers.imported import KINDS, Imported, kind_of
from simperf.calibrate.importers.kineto import import_kineto, read_trace
from simperf.calibrate.importers.nccl_tests import import_nccl_json, import_nccl_text
from simperf.calibrate.importers.table import import_table

__all__ = [
    "KINDS",
    "Imported",
    "import_file",
    "import_files",
    "import_kineto",
    "import_nccl_json",
    "import_nccl_text",
    "import_table",
    "kind_of",
    "read_trace",
]
