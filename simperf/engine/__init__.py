"""The engine: clock, devices and their streams, hosts, disks, the flow network, and the recorder of a run."""
