"""Published recipes as options of `lsh.deduplicate`: `preset`."""

from lsh.sketch.presets import NAMES, Preset, bigcode, fineweb, nemo, preset

__all__ = ["NAMES", "Preset", "bigcode", "fineweb", "nemo", "preset"]
