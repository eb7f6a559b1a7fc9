"""Executors of collectives: ways of playing a plan, each of which gives the times of the step-exact one."""
