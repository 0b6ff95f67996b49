"""The runs behind figures and claims: they make data, and judge nothing."""
