"""Files of other programs: machines and jobs in their formats."""
