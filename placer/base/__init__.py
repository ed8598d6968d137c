"""What every room stands on: errors, units, names, arrays, threads."""
