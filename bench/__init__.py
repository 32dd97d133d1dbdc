"""The benchmark suite; `scripts/bench` runs it.

__main__     the command                 workloads/   what is measured, one module each
contestants  what is compared            stacks/      the programs that we wrote for it
install      their packages              stores       large databases to measure on
client       the one client              bars         the limits that the figures must meet
stats        medians, spread, ratios     report plots machine   what people read
"""
