"""The solvers of integer programs, as every model here is solved."""
