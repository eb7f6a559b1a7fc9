"""Facts of a measured machine that are numbers, in recordings and in profiles."""

__all__ = ["NUMBERS"]

#: counts, and sizes [B]
NUMBERS = ("cores", "memory", "l1d", "l2", "l3", "l3_shared", "gpus", "gpu_memory", "gpu_l2", "sms")
