"""What a job keeps in a GPU's memory, from the job alone."""
