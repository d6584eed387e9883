"""From a request to ranked, explained advice."""
