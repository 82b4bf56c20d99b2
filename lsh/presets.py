"""Published recipes as options of `lsh.deduplicate`, `preset`, and of `lsh.find_contained`, `rule`."""

from lsh.passages.rules import RULES, Rule, rule
from lsh.sketch.presets import NAMES, Preset, bigcode, fineweb, nemo, preset

__all__ = ["NAMES", "RULES", "Preset", "Rule", "bigcode", "fineweb", "nemo", "preset", "rule"]
