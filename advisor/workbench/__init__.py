"""What experts use to change rules without fear."""
