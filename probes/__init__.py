"""What the machine does: one probe a file, and the sampler that runs them."""
