"""From bytes of the outside to text: HTML, PDF, feeds, in a process of their own with limits."""
