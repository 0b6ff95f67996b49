"""What maintains the project: checks, programs for the tests, compiled kernels. Not part of the package."""
