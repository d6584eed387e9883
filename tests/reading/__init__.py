"""What people type and paste is read."""
