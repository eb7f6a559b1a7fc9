"""Training jobs as frameworks have them configured, read as scenarios."""

from simperf.frameworks.imported import ImportedJob
from simperf.frameworks.importer import FRAMEWORKS, import_job

__all__ = ["FRAMEWORKS", "ImportedJob", "import_job"]
