"""Many requests at once: estimates, batches of reports, their audit and their site."""
