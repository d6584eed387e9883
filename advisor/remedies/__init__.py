"""Remedies: changed scenarios, each estimated by the estimator that sized the request."""
