"""What every layer uses: errors, limits, buffers and memory budgets."""
