"""What people type and paste, read: names of models, the public list behind them, commands."""
