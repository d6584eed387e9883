"""What people type and paste, read: names of models and the public list, commands, logs."""
