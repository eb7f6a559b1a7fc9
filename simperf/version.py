"""The version of the package, which results, caches and pages carry."""

__all__ = ["__version__"]

__version__ = "0.1.0"
