"""The commands of `tunebot`: of each its options, its help and its handler, side by side."""
