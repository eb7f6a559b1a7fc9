"""Executors of collectives: ways of simulating a plan, each of which gives the times of the step-exact one.

- `Stepwise`, the reference: every send is a flow and an event of its own;
- `Collapsed`: times without events as long as nothing else is on the links, by a recurrence or by rotation;
- `ChannelFlows`: a library's channels, a flow each;
- `HostThreads`: threads of hosts that have network stacks.
"""

from simperf.collectives.executors.base import Context, Execution, Executor, PlacedPlan, used_links
from simperf.collectives.executors.channel_flows import ChannelFlows
from simperf.collectives.executors.collapsed import Collapsed
from simperf.collectives.executors.host_threads import HostThreads
from simperf.collectives.executors.stepwise import Stepwise

__all__ = [
    "ChannelFlows",
    "Collapsed",
    "Context",
    "Execution",
    "Executor",
    "HostThreads",
    "PlacedPlan",
    "Stepwise",
    "used_links",
]
