"""The paper, reproduced: a module for each figure, and its claims with a verdict each."""
