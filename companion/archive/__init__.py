"""How ``mdello.pyz`` starts. Used inside the archive only; imports nothing else of ours."""
