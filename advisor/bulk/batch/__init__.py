"""Written reports in bulk: plans, shards, executors, files, and going on after a stop.

A plan is cut into shards of a fixed size. One shard is made by one function from plan to bytes,
in this process, in a pool or on a cluster, and lies in the output folder whole or not at all.
"""
