"""The user's own measurements: read, checked, stored, and laid over the calibration."""
