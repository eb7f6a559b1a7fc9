"""Parts that carry or keep bytes: links, NICs, switches and storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from simperf.hardware.part import Part
from simperf.hardware.quantity import (
    Bandwidth,
    Count,
    Fraction,
    Frequency,
    InFile,
    Latency,
    Overhead,
    Size,
    Velocity,
)

__all__ = ["LinkPart", "NicPart", "StoragePart", "SwitchPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPart(Part):
    """A cable, a slot or a lane bundle; numbers are per direction.

    Payload bandwidth = rate x lanes x encoding x payload / (payload + overhead) x protocol_efficiency.

    Parameters
    ----------
    technology : str
        ``"pcie"``, ``"nvlink"``, ``"ethernet"``, ``"infiniband"``, ``"qpi"``, ``"upi"``,
        ``"fabric"``, ``"sata"``, ``"wan"``.
    rate : float
        Of one lane on the wire [B/s].
    lanes : int
        Lanes of one link.
    encoding : float
        Payload bits per line bit, such as 128/130.
    payload, overhead : float
        Bytes of data in a full packet, and bytes of headers, framing and gaps around them [B].
    protocol_efficiency : float
        What is left after acknowledgements, flow control and the like.
    latency : float
        One way, without the devices at its ends [s].
    velocity : float or None
        Of the signal in the medium [m/s]; a link with a length adds length / velocity.
    shared : bool
        Both directions draw on one capacity (a bus), instead of one each.
    flow_limit : float or None
        The most that one flow gets [B/s].
    """

    KIND: ClassVar[str] = "link"

    technology: Annotated[
        str, InFile(Literal["pcie", "nvlink", "ethernet", "infiniband", "qpi", "upi", "fabric", "sata", "wan"])
    ]
    rate: Bandwidth
    lanes: Count = 1
    encoding: Fraction = 1.0
    payload: Size = 1.0
    overhead: Overhead = 0.0
    protocol_efficiency: Fraction = 1.0
    latency: Latency
    velocity: Velocity | None = None
    shared: bool = False
    flow_limit: Bandwidth | None = None

    @property
    def raw(self) -> float:
        """Line rate of all lanes, before encoding and headers [B/s]."""
        return self.rate * self.lanes

    @property
    def bandwidth(self) -> float:
        """Payload that it carries a direction [B/s]."""
        framing = self.payload / (self.payload + self.overhead)
        return self.rate * self.lanes * self.encoding * framing * self.protocol_efficiency


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePart(Part):
    """A disk, a drive or a cloud volume.

    Parameters
    ----------
    technology : str
        ``"hdd"``, ``"sata-ssd"``, ``"nvme"`` or ``"cloud-volume"``.
    capacity : float
        [B]
    read_bandwidth, write_bandwidth : float
        Sequential [B/s].
    read_latency, write_latency : float
        Of one request that finds the device idle, without seek and rotation [s].
    read_iops, write_iops : float
        Random requests of one block [1/s].
    block : float
        Smallest unit that is read or written [B].
    seek : float
        Average seek [s], zero without moving parts.
    rotation : float
        Revolutions [1/s], zero without moving parts; the worst wait is one revolution.
    """

    KIND: ClassVar[str] = "storage"

    technology: Annotated[str, InFile(Literal["hdd", "sata-ssd", "nvme", "cloud-volume"])]
    capacity: Size
    read_bandwidth: Bandwidth
    write_bandwidth: Bandwidth
    read_latency: Latency
    write_latency: Latency
    read_iops: Frequency
    write_iops: Frequency
    block: Size
    seek: Latency = 0.0
    rotation: Frequency = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NicPart(Part):
    """A network interface (NIC).

    Parameters
    ----------
    technology : str
        ``"ethernet"``, ``"infiniband"`` or ``"efa"``.
    bandwidth : float
        Line rate of all its ports [B/s]; what it carries is up to the link that is plugged in.
    latency : float
        Latency that the NIC itself adds, one way [s].
    flow_limit : float or None
        The most that one flow gets [B/s], as clouds limit it.
    """

    KIND: ClassVar[str] = "nic"

    technology: Annotated[str, InFile(Literal["ethernet", "infiniband", "efa"])]
    bandwidth: Bandwidth
    latency: Latency
    flow_limit: Bandwidth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPart(Part):
    """A switch: PCIe, NVSwitch, Ethernet or InfiniBand.

    Parameters
    ----------
    technology : str
        ``"pcie"``, ``"nvlink"``, ``"ethernet"`` or ``"infiniband"``.
    latency : float
        From port to port [s].
    ports : int
        Ports of one switch.
    backplane : float or None
        Capacity between all ports together [B/s]; without it the switch does not block.
    reduces : bool
        Reduces in the network (SHARP, NVLS).
    """

    KIND: ClassVar[str] = "switch"

    technology: Annotated[str, InFile(Literal["pcie", "nvlink", "ethernet", "infiniband"])]
    latency: Latency
    ports: Count
    backplane: Bandwidth | None = None
    reduces: bool = False
