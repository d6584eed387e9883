"""Measurements in, speed parameters out: what knowledge/calibration-fitted.yaml is made by."""
