"""Bulk estimates: requests in as JSON Lines or CSV, figures out as JSON Lines.

Lines are read, estimated and written one at a time, so memory does not grow with the file.
"""

from advisor.bulk.estimates.figures import (
    Failure,
    Line,
    LineDoc,
    ParametersDoc,
    estimate_request,
    estimate_row,
    estimates,
)
from advisor.bulk.estimates.rows import MOST_BYTES, Row, read_rows

__all__ = [
    "MOST_BYTES",
    "Failure",
    "Line",
    "LineDoc",
    "ParametersDoc",
    "Row",
    "estimate_request",
    "estimate_row",
    "estimates",
    "read_rows",
]
