"""What the clients that run inside an agent share: companion.js, and how it gets into each of them."""
