"""The benchmark suite; `scripts/bench` runs it.

__main__     the command                 workloads/   what is measured, one module each
contestants  who takes part              stacks/      the programs that we wrote for it
install      their packages              stores       large databases to measure on
client       the one client              bars         what the figures are held against
stats        medians, spread, ratios     report plots machine   what people read
"""
