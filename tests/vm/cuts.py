"""Power cuts: the machine always boots the old or the new image, whole, and the next upgrade succeeds."""
