"""The stages of a run on many machines: functions from Arrow batches to Arrow batches, without a framework."""
