"""What the processes of ours that confine themselves or others have in common, in the kernel's own terms."""
