"""What stands behind `./dev`: one module for each of its commands. Standard library only."""
