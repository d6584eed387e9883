"""Bulk estimates: requests in as JSON Lines or CSV, figures out as JSON Lines.

Lines are read, estimated and written one at a time, so memory does not grow with the file.
"""

from advisor.bulk.estimates.figures import (
    Failure,
    LineDoc,
    ParametersDoc,
    estimate_request,
    estimate_row,
    load,
    written,
)
from advisor.bulk.estimates.rows import MOST_BYTES, Row, read_rows

__all__ = [
    "MOST_BYTES",
    "Failure",
    "LineDoc",
    "ParametersDoc",
    "Row",
    "estimate_request",
    "estimate_row",
    "load",
    "read_rows",
    "written",
]
