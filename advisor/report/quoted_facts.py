"""Which facts the result document quotes."""

QUOTED_FACTS = (
    "fit.cause",
    "fit.gap",
    "gpu.bandwidth_class",
    "headroom.class",
    "host.ram_needed",
    "model.attention",
    "options.combination_fits",
    "options.dominated",
    "options.fitting",
    "options.largest_machine",
    "options.least_needed",
    "options.most_memory",
    "options.none_exists",
    "options.smallest_format",
    "speed.class",
    "weights.published",
    "workload.kind",
)
"""Facts outside the other keys that templates may name."""
