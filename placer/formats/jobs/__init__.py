"""Jobs from what people have: scripts, configurations and logs of other programs."""
