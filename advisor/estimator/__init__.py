"""What a scenario occupies and how fast it runs: pure functions, one formula each."""
